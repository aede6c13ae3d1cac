package bench

import (
	"context"
	"fmt"

	"github.com/chorale-go/chorale"
	"github.com/chorale-go/chorale/sched"
)

// longestPart returns the most bytes of a part.
func (c Cell) longestPart() int {
	if c.Form == uneven {
		return 2 * c.Bytes
	}
	return c.Bytes
}

// part returns how many elements part k has: a half of the average in one of two, and
// one and a half in the next one. The last of an odd number has the average.
func (w *work[T]) part(k int) int {
	switch {
	case k%2 == 1:
		return w.count + w.count - w.count/2
	case k+1 < w.shape.P:
		return w.count / 2
	}
	return w.count
}

// start returns the index at which block b begins in a vector of rank r. Of an uneven
// alltoall, what r and s send to each other is equally long, which depends on r + s.
func (w *work[T]) start(r, b int) (n int) {
	if !w.uneven {
		return b * w.count
	}
	for k := range b {
		if w.shape.Collective == sched.AllToAll {
			k = (r + k) % w.shape.P
		}
		n += w.part(k)
	}
	return n
}

// length returns how many elements a range of this rank's blocks has.
func (w *work[T]) length(blocks sched.Range) int {
	return w.start(w.comm.Rank(), blocks.Hi) - w.start(w.comm.Rank(), blocks.Lo)
}

// counts returns the lengths of the parts of this rank's vector.
func (w *work[T]) counts() []int {
	if w.lengths == nil {
		for b := range w.shape.P {
			w.lengths = append(w.lengths, w.length(sched.Range{Lo: b, Hi: b + 1}))
		}
	}
	return w.lengths
}

// buffers returns the parts of the buffers that this rank has in a call with the present
// root. Their lengths are computed once for each root, and not in calls that are timed.
func (w *work[T]) buffers() (in, out []T) {
	if w.buffersOf == nil {
		w.buffersOf = make([][2][]T, w.shape.P)
	}
	b := &w.buffersOf[w.shape.Root]
	if b[0] == nil {
		*b = [2][]T{w.in[:w.length(w.extent(sched.In))], w.out[:w.length(w.extent(sched.Out))]}
	}
	return b[0], b[1]
}

// dispatchUneven is dispatch for parts that differ in length.
func (w *work[T]) dispatchUneven(ctx context.Context, c *chorale.Comm, options []chorale.Option) error {
	in, out := w.buffers()
	switch root := w.shape.Root; w.shape.Collective {
	case sched.Scatter:
		return chorale.ScatterV(ctx, c, out, in, w.counts(), root, options...)
	case sched.Gather:
		return chorale.GatherV(ctx, c, out, in, w.counts(), root, options...)
	case sched.AllGather:
		return chorale.AllGatherV(ctx, c, out, in, w.counts(), options...)
	case sched.ReduceScatter:
		return chorale.ReduceScatterVFunc(ctx, c, out, in, w.counts(), w.op, options...)
	case sched.AllToAll:
		return chorale.AllToAllV(ctx, c, out, in, w.counts(), w.counts(), options...)
	}
	return fmt.Errorf("%v has no parts that differ in length", w.shape.Collective)
}
