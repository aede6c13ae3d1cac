// Package bench measures what collectives take, and what the machine allows.
//
// [Bench.Measure] measures one cell of a table: a collective, an algorithm, a
// size; or one of [Patterns], an exchange of tagged messages. [MeasureLimits] measures lower bounds that no collective can beat: a copy
// of the same bytes, and an exchange between two processors. [Row.Compare] relates
// the two. The command chorale bench prints the rows; package compare sets them
// beside MPI, measured with the same loop in C.
//
// # How a cell is measured
//
// A sample is the time of a batch of consecutive calls, divided by their number.
// The batch follows a barrier of the library, which is not timed. Each rank times
// its own batch, and the slowest rank's time counts. A batch takes 1 ms or more, so
// that neither the resolution of the clock matters, nor the skew with which ranks
// leave the barrier. If one call takes longer than that, a batch is one call.
//
// Warm-up comes first: batches of 1, 2, 4, … calls, three of each, until the fastest
// takes 1 ms, and then more of that length for as long as the samples may take.
// Samples are taken until the median is stable, that is, within 1 % of the true one
// with a confidence of 95 %, or until the time for the cell is over. There are at
// least five.
//
// Rooted collectives are measured with a rotating root: each call of a batch has the
// next rank for its root. A root that must first receive from the root before it
// cannot run ahead, so that a batch shows the latency of calls. With one fixed root,
// it shows their rate: the root of a broadcast waits for no other rank if the library
// buffers the message. [Cell.Root] selects a fixed root.
//
// All calls of a cell use the same buffers, aligned to pages and written to before
// the first call. Send and receive buffer never share memory, but a broadcast has one
// buffer. Reductions sum float32. A shift is by 1.
package bench
