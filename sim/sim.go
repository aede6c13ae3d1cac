package sim

import (
	"fmt"

	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/topo"
)

// A Config is the network of a simulation. Topology is required; the zero value
// of every other field has a meaning.
type Config struct {
	Topology  topo.Topology
	Placement topo.Placement // the processor of each rank; nil for its own number
	Model     model.Model    // in any one unit of time

	// Between prices a message between two ranks of different hosts of a [topo.Hosts], in
	// place of Model; nil for Model. Its Top counts nothing.
	Between *model.Model

	AllPort         bool // a node uses all its links at once, not one port out and one in
	StoreAndForward bool // each link of a route carries the whole message before the next one does
	Share           bool // messages share a link's bandwidth, max-min fairly, rather than wait for each other
	Sync            bool // all ranks begin each step together

	// MemoryBandwidth is the number of words per unit of time that a node's
	// memory gives to all messages that it sends together, and takes from all
	// that it receives; 0 for no limit. Messages share it max-min fairly.
	MemoryBandwidth float64

	// Machine is what a machine takes, in place of Model; nil for Model. Its times
	// count whatever the number of links that a message crosses.
	Machine *Machine

	// Record asks for Result.Log and Result.Links.
	Record bool

	// MemoryLimit is the number of bytes of this process's memory that Run may
	// take, by its own estimate; 0 means 4 GiB.
	MemoryLimit int64
}

// A Part is a schedule, the ranks that run it, and the words that it moves.
type Part struct {
	Schedule *sched.Schedule

	// Ranks are the ranks of the simulation that run it: rank i of the schedule
	// is Ranks[i]. Nil means all of them in order.
	Ranks []int

	// Words is the m of the textbook's formulas: the words of the whole vector
	// where every rank holds all of it, and of one rank's part where the vector
	// is one part per rank. It is cut into blocks as evenly as whole words can
	// be.
	Words int
}

// Run simulates schedules, one or several. A rank that has a part in several
// runs them in the order given; parts that share no rank run at the same time.
//
// The schedules must be right: see [sched.Schedule.Check]. Run returns an error
// for a schedule whose programs do not fit together, and does not notice other
// faults. An error is one line. A simulation that would take more memory than
// the limit is refused with a [*TooLargeError].
//
// Time is linear in the number of links that messages cross. With Share or a
// MemoryBandwidth, each start and end also takes time in proportion to the
// messages under way. Memory is 12 bytes per message, and as many per step of a
// rank; 215 per rank; and 12 per directed link of the network, or if that is less
// at most 40 per link that a message crosses. Links take none with single ports if
// each message crosses one link, and no step of a rank sends to another rank twice.
// Messages that wait for each other take about 120 bytes more.
func Run(c Config, parts ...Part) (*Result, error) {
	ranks, err := c.validate(parts)
	if err != nil {
		return nil, err
	}
	expected := estimateSize(parts)
	c.Machine = c.completedMachine(ranks)
	if err := c.checkMemory(ranks, expected, c.sharesBandwidth() || c.Machine.works()); err != nil {
		return nil, err
	}
	n := newNetwork(c, ranks)
	p, err := newProgramTable(n, parts, expected, c.Sync)
	if err != nil {
		return nil, err
	}
	e, err := runContentionFree(c, p, n)
	if err != nil {
		return nil, err
	}
	if p.copiesAlone {
		if e.perStep, err = unsynchronized(c, parts, expected, n); err != nil {
			return nil, err
		}
	}
	times := e.times
	if e.contended || c.sharesBandwidth() || c.Machine.works() {
		counted := estimate{float64(len(p.steps)), float64(len(p.messages))}
		if err := c.checkMemory(ranks, counted, true); err != nil {
			return nil, err
		}
		links := e.links
		e.times, e.rendezvous.ranks, e.links, times = nil, nil, linkTable{}, nil // their memory is free
		if c.Machine.works() {
			times = newProcessing(c, p, n, links).run()
		} else {
			times = newQueueing(c, p, n, links).run()
		}
	}
	return e.result(times), nil
}

// unsynchronized returns the steps of the timeline of a simulation with Sync, in
// which ranks have steps of copies alone. The ranks then send the messages of
// one step of the timeline at different times, and those of several at one. But
// which links they ask for in a step does not depend on time.
func unsynchronized(c Config, parts []Part, expected estimate, n *network) ([]Step, error) {
	c.Sync = false
	p, err := newProgramTable(n, parts, expected, false)
	if err != nil {
		return nil, err
	}
	e, err := runContentionFree(c, p, n)
	if err != nil {
		return nil, err
	}
	return e.perStep, nil
}

// sharesBandwidth reports whether messages slow each other down rather than
// wait.
func (c Config) sharesBandwidth() bool {
	return c.Share || c.MemoryBandwidth > 0 || c.Machine != nil && c.Machine.Memory > 0 || c.sharesNetwork()
}

// sharesNetwork reports whether messages between the hosts of a machine share links.
func (c Config) sharesNetwork() bool { return c.Machine != nil && c.Machine.Network > 0 }

// maxParameter and its inverse bound the parameters of the model, so that no sum
// or quotient of times overflows.
const maxParameter = 1e100

// validate reports what is wrong with the call, and returns the number of
// ranks.
func (c Config) validate(parts []Part) (ranks int, err error) {
	type parameter struct {
		name  string
		value float64
	}
	all := []parameter{{"ts", c.Model.Ts}, {"tw", c.Model.Tw}, {"th", c.Model.Th}, {"top", c.Model.Top}, {"memory bandwidth", c.MemoryBandwidth}}
	_, hosts := c.Topology.(*topo.Hosts)
	if b := c.Between; b != nil {
		all = append(all, parameter{"ts between hosts", b.Ts}, parameter{"tw between hosts", b.Tw}, parameter{"th between hosts", b.Th})
	}
	for _, parameter := range all {
		if !(parameter.value >= 0) {
			return 0, fmt.Errorf("%s %v: want a number, 0 or more", parameter.name, parameter.value)
		}
		if x := parameter.value; x > maxParameter || x > 0 && x < 1/maxParameter {
			return 0, fmt.Errorf("%s %v: want 0, or a number from %v to %v", parameter.name, x, 1/maxParameter, maxParameter)
		}
	}
	if c.Machine != nil {
		if err := c.Machine.validate(c); err != nil {
			return 0, err
		}
	}
	switch {
	case c.Topology == nil:
		return 0, fmt.Errorf("no topology")
	case !hosts && (c.Between != nil || c.sharesNetwork()):
		return 0, fmt.Errorf("prices between hosts on %v: want a topology of hosts", c.Topology)
	case len(parts) == 0:
		return 0, fmt.Errorf("no schedule")
	}
	for _, part := range parts {
		n, err := part.validate()
		if err != nil {
			return 0, err
		}
		ranks = max(ranks, n)
	}
	return ranks, c.checkPlacement(ranks)
}

// validate returns the number of ranks that the simulation needs for this part.
func (p Part) validate() (ranks int, err error) {
	s := p.Schedule
	if s == nil || s.Make == nil || s.P < 1 {
		return 0, fmt.Errorf("no schedule")
	}
	pieces := s.Blocks
	if s.Partitioned() {
		pieces /= s.P
	}
	switch {
	case p.Words < 0:
		return 0, fmt.Errorf("m %d: want a number of words, 0 or more", p.Words)
	case pieces > 1 && p.Words < pieces:
		return 0, fmt.Errorf("m %d: %v %s on %d ranks cuts it in %d pieces: want m %d or more", p.Words, s.Collective, s.Algorithm, s.P, pieces, pieces)
	case p.Ranks == nil:
		return s.P, nil
	case len(p.Ranks) != s.P:
		return 0, fmt.Errorf("%d ranks for a schedule of %d", len(p.Ranks), s.P)
	}
	seen := make(map[int]bool, s.P)
	for _, r := range p.Ranks {
		if r < 0 || seen[r] {
			return 0, fmt.Errorf("rank %d in a part: want ranks from 0 on, each once", r)
		}
		seen[r] = true
		ranks = max(ranks, r+1)
	}
	return ranks, nil
}

// checkPlacement checks that every rank has a processor of its own.
func (c Config) checkPlacement(ranks int) error {
	processors := c.Topology.Processors()
	if ranks > processors {
		return fmt.Errorf("%d ranks on %v, which has %d processors: want a larger one", ranks, c.Topology, processors)
	}
	if c.Placement == nil {
		return nil
	}
	if len(c.Placement) < ranks {
		return fmt.Errorf("a placement of %d ranks: want %d", len(c.Placement), ranks)
	}
	taken := make([]bool, processors)
	for r, at := range c.Placement[:ranks] {
		if at < 0 || at >= processors || taken[at] {
			return fmt.Errorf("rank %d on processor %d: want one from 0 to %d, each once", r, at, processors-1)
		}
		taken[at] = true
	}
	return nil
}
