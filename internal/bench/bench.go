// Package bench measures what collectives take, and what the machine allows.
//
// [Bench.Measure] measures one cell of a table: a collective, an algorithm, a
// size. [MeasureLimits] measures what no collective can beat: a copy of the
// same bytes, and an exchange between two processors.
//
// # How a cell is measured
//
// A sample is a batch of calls, one right after another, after a barrier of the
// library's own that is not timed. Each rank takes the time of its batch; the
// sample is the slowest rank's, divided by the number of calls. A batch is so
// long, about a millisecond, that neither the clock's resolution nor the moment
// between the first and the last rank's leaving of the barrier matters. One call
// that takes longer is a batch.
//
// Before that, batches of 1, 2, 4, … calls warm up, three of each, until the
// fastest is long enough; and then more of them, for as long in all as the samples
// may take. Samples are taken until the median is stable: 95 % of the time, the
// true one is within 1 % of it; or until the time for a cell is over. The first few
// samples are always taken.
//
// The root, where there is one, goes round: each call of a batch has the next
// rank for its root. A root that has to receive what the one before has sent
// cannot run ahead, so that a batch shows how long calls take. With one root for
// all, it shows how fast they follow each other: the root of a broadcast need
// not wait for anybody if the library buffers what it sends. [Cell.Root] is for
// who wants to know that.
//
// All calls of a cell use the same buffers, aligned to pages and written to
// beforehand. What is sent and what is received never share memory, but for a
// broadcast, which has one buffer. Reductions sum float32. A shift is by 1.
//
// The programs in compare measure MPI with the same loop.
package bench

import (
	"context"
	"fmt"
	"time"
	"unsafe"

	"github.com/chorale-go/chorale"
	"github.com/chorale-go/chorale/sched"
)

// A Cell is what to measure.
type Cell struct {
	Collective sched.Collective
	Algorithm  string // as for [chorale.WithAlgorithm]; "" is the one that is chosen
	// Root is the root of every call, where the collective has one; EachRoot
	// lets it go round.
	Root int
	// Bytes is the size of one rank's message, as MPI counts it: the vector, or,
	// where a vector is one part per rank (scatter, gather, allgather,
	// reduce-scatter, alltoall), one part.
	Bytes int
}

// EachRoot stands for a root that goes round.
const EachRoot = -1

// Valid reports an error if no number of ranks can measure the cell.
func (c Cell) Valid() error {
	if size := c.element(); c.Bytes < 0 || c.Bytes%size != 0 {
		return fmt.Errorf("%v of %d bytes: want a multiple of %d", c.Collective, c.Bytes, size)
	}
	return nil
}

// element returns the size of an element.
func (c Cell) element() int {
	if c.Collective.Combines() {
		return int(unsafe.Sizeof(float32(0)))
	}
	return 1
}

// Memory returns how many bytes the buffers of p ranks take. Each rank has what a
// root needs.
func (c Cell) Memory(p int) (bytes float64) {
	shape := shapeOf(c.Collective, p, 0)
	blocks := shape.Extent(sched.In, 0).Len() + shape.Extent(sched.Out, 0).Len()
	return float64(p) * float64(blocks) * float64(c.Bytes)
}

// A Row is what a cell takes. Times are in microseconds per call, each the
// slowest rank's.
type Row struct {
	Collective string  `json:"collective"`
	Algorithm  string  `json:"algorithm"` // what was run
	Transport  string  `json:"transport"`
	Ranks      int     `json:"n"`
	Bytes      int     `json:"bytes"`
	Iterations int     `json:"iterations"` // calls that were timed
	Min        float64 `json:"min"`
	Median     float64 `json:"median"`
	P99        float64 `json:"p99"`
	Mean       float64 `json:"mean"`
	Verified   bool    `json:"verified"` // what the calls left behind was right

	// What follows from the times, as [Row.Compare] fills it in.
	Bandwidth  float64 `json:"bandwidth"`  // Bytes over Median, in MB/s, that is, bytes per microsecond
	ToCopy     float64 `json:"toCopy"`     // Median over the time of a copy of Bytes; 0 if that was not measured
	ToExchange float64 `json:"toExchange"` // Median over the time of an exchange; 0 if that was not measured
	Winner     bool    `json:"winner"`     // the fastest of several algorithms for the same call
}

// A Bench is one rank's part in measuring. All ranks measure the same cells, in
// the same order.
type Bench struct {
	Comm      *chorale.Comm
	Transport string        // the name of what the ranks communicate by
	Time      time.Duration // for the samples of one cell, if their median is not stable before
	Verify    bool          // compare what calls leave behind with what the collective promises

	memory memory
	loop   loop
}

// Reserve makes the memory for cells that will be measured. Without it, a cell that
// needs more than those before gets new memory.
func (b *Bench) Reserve(cells []Cell) {
	for _, cell := range cells {
		b.memory.reserve(cell, b.Comm)
	}
}

// Measure measures a cell. An error of the call, or a result that is not what
// the collective promises, ends the rank's part.
func (b *Bench) Measure(ctx context.Context, cell Cell) (Row, error) {
	if err := cell.Valid(); err != nil {
		return Row{}, err
	}
	if cell.Collective.Combines() {
		return measure[float32](ctx, b, cell)
	}
	return measure[byte](ctx, b, cell)
}

func measure[T element](ctx context.Context, b *Bench, cell Cell) (Row, error) {
	w := newWork[T](b.Comm, cell, &b.memory)
	check := w.verify
	if !b.Verify {
		check = w.run
	}
	for range w.turns { // the first call with a root works out what the others use
		if err := check(ctx); err != nil {
			return Row{}, err
		}
	}
	var stats chorale.Stats
	if err := w.call(ctx, append(w.options, chorale.WithStats(&stats))); err != nil {
		return Row{}, err
	}
	samples, calls, err := b.loop.run(ctx, b.Comm, b.Time, w.run)
	if err != nil {
		return Row{}, err
	}
	if err := check(ctx); err != nil {
		return Row{}, err
	}
	row := Row{
		Collective: cell.Collective.String(),
		Algorithm:  stats.Algorithm,
		Transport:  b.Transport,
		Ranks:      b.Comm.Size(),
		Bytes:      cell.Bytes,
		Iterations: calls * len(samples),
		Verified:   b.Verify,
	}
	row.Min, row.Median, row.P99, row.Mean = summarize(samples)
	return row, nil
}
