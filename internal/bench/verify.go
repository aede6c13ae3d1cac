package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/chorale-go/chorale"
	"github.com/chorale-go/chorale/sched"
)

// period is the number of elements after which the contents of a vector repeat. It
// is a prime, so that a block at a wrong offset does not look right.
const period = 251

// value is element i of rank r's In. Its sums are exact in float32 for any number of
// ranks that a machine can run.
func value(r, i int) int { return (37*r + i) % period }

// poison fills Out before a call. It differs from every value and sum.
func poison[T element]() T { return T(0) - 1 }

// verify makes the call once, and compares every element of the result with the
// definition of the collective.
func (w *work[T]) verify(ctx context.Context) error {
	if w.shape.Collective == sched.Barrier {
		return w.verifyBarrier(ctx)
	}
	return w.verifyData(ctx)
}

func (w *work[T]) verifyData(ctx context.Context) error {
	before := *w // with the root of this call
	from, blocks := w.extent(sched.In), w.extent(sched.Out)
	in, out := w.in[:w.length(from)], w.out[:w.length(blocks)]
	for i := range out {
		out[i] = poison[T]()
	}
	if w.shape.Collective == sched.Bcast && from.Len() > 0 {
		in = out // a broadcast has one buffer
	}
	for i := range in {
		in[i] = T(value(w.comm.Rank(), w.start(w.comm.Rank(), from.Lo)+i))
	}
	sent := slices.Clone(in[:min(len(in), period)])
	if err := w.run(ctx); err != nil {
		return err
	}
	for b := blocks.Lo; b < blocks.Hi; b++ {
		lo, n := w.length(sched.Range{Lo: blocks.Lo, Hi: b}), w.length(sched.Range{Lo: b, Hi: b + 1})
		if err := before.verifyBlock(b, out[lo:lo+n]); err != nil {
			return err
		}
	}
	if !slices.Equal(sent, in[:len(sent)]) {
		return fmt.Errorf("%v on rank %d wrote to what it sends", w.shape.Collective, w.comm.Rank())
	}
	return nil
}

// verifyBlock compares block b of Out.
func (w *work[T]) verifyBlock(b int, got []T) error {
	want := w.shape.Expected(w.comm.Rank(), b)
	var sums [period]T
	for i := range sums {
		if want.Lo == want.Hi {
			sums[i] = poison[T]()
		}
		for r := want.Lo; r < want.Hi; r++ {
			sums[i] += T(value(r, w.start(r, want.Block)+i))
		}
	}
	for i := range got {
		if got[i] != sums[i%period] {
			return fmt.Errorf("%v on rank %d: element %d of block %d is %v: want %v",
				w.shape.Collective, w.comm.Rank(), i, b, got[i], sums[i%period])
		}
	}
	return nil
}

// verifyBarrier checks that no rank leaves the barrier before the last one enters.
// The ranks are on one machine, and read the same clock.
func (w *work[T]) verifyBarrier(ctx context.Context) error {
	entered := time.Now().UnixNano()
	if err := w.run(ctx); err != nil {
		return err
	}
	left := time.Now().UnixNano()
	last := []int64{entered}
	if err := chorale.AllReduce(ctx, w.comm, last, last, chorale.Max); err != nil {
		return err
	}
	if left < last[0] {
		return fmt.Errorf("barrier: rank %d left it %v before the last rank entered", w.comm.Rank(), time.Duration(last[0]-left))
	}
	return nil
}
