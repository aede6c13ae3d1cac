// Package algo is the catalog of algorithms: for each collective, the ways to do
// it that the literature knows.
//
// [New] makes a schedule from an algorithm's name and parameters, [Catalog] lists
// all algorithms, [Cheapest] chooses one by cost, and [Register] adds one of the caller's
// own. A file with a schedule serves wherever a name does.
//
// Each algorithm has a file of its own, which states the idea, the cost, when to
// prefer the algorithm, and its source. Costs are written in α, the start-up time
// of a message, β, the time per word, and γ, the time per word combined; n is the
// number of words of the whole vector, p the number of ranks, and lg the
// logarithm to base 2. Costs assume one port: a rank sends one message and
// receives one at a time. Only algorithms that are restricted to all ports assume
// that a rank uses all its links at once.
//
// Algorithms named hierarchical know which ranks share a host, and send little between
// hosts; h is the number of hosts, and g that of the ranks on a host. [FormatHosts]
// makes their parameter.
//
// An algorithm is one [Algorithm] value, which catalog.go lists. Its builder turns
// the arguments of New into a generator: the numbers of blocks, and a function
// that makes the program of one rank. A rank's program follows from its number, p,
// the root and the parameters alone, in time and memory proportional to the
// rank's own steps.
package algo
