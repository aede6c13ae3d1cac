package bench

import (
	"bytes"
	"context"
	"fmt"
	"unsafe"

	"github.com/chorale-go/chorale"
	"github.com/chorale-go/chorale/sched"
)

// An element is a type that collectives are measured with: float32 where they
// sum, else byte.
type element interface{ byte | float32 }

// memory is a rank's two buffers. All cells use the same.
type memory struct{ in, out []byte }

// page is enough that no two ranks' buffers share a cache line or a page.
const page = 4096

// reserve sees to it that there are so many bytes. New memory is touched.
func reserve(buf *[]byte, n int) {
	if len(*buf) < n || *buf == nil {
		*buf = bytes.Repeat([]byte{1}, (n+page)/page*page)
	}
}

// reserve sees to it that a cell of a rank of c finds what it needs, whoever is
// the root.
func (m *memory) reserve(cell Cell, c *chorale.Comm) {
	shape := shapeOf(cell.Collective, c.Size(), c.Rank())
	reserve(&m.in, shape.Extent(sched.In, c.Rank()).Len()*cell.Bytes)
	reserve(&m.out, shape.Extent(sched.Out, c.Rank()).Len()*cell.Bytes)
}

// elements returns the first n elements of a buffer.
func elements[T element](buf []byte, n int) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(buf))), n)
}

// work is a cell's call on one rank, with its buffers.
type work[T element] struct {
	comm    *chorale.Comm
	shape   sched.Schedule // the collective; Root is that of the next call
	turns   int            // the root goes round so many ranks
	count   int            // elements of a block: a part, or the whole vector
	in, out []T            // as long as a root needs them
	call    func(ctx context.Context, options []chorale.Option) error
	options []chorale.Option
}

// shapeOf returns a schedule without programs, of which it can be asked what the
// collective is: a block per rank, or just one.
func shapeOf(c sched.Collective, p, root int) sched.Schedule {
	s := sched.Schedule{Collective: c, P: p, Blocks: 1}
	switch {
	case s.Parted():
		s.Blocks = p
	case c == sched.Barrier:
		s.Blocks = 0
	}
	switch {
	case c.Rooted():
		s.Root = root
	case c == sched.Shift:
		s.Root = 1 % p
	}
	return s
}

// mostRoots is how many ranks the root goes round at most: few enough for each to
// have been the root before the measuring begins.
const mostRoots = 16

func newWork[T element](c *chorale.Comm, cell Cell, m *memory) *work[T] {
	w := &work[T]{comm: c, turns: 1, count: cell.Bytes / cell.element()}
	w.shape = shapeOf(cell.Collective, c.Size(), c.Rank()) // what a rank needs as the root is enough for it whoever is
	m.reserve(cell, c)
	w.in = elements[T](m.in, w.extent(sched.In).Len()*w.count)
	w.out = elements[T](m.out, w.extent(sched.Out).Len()*w.count)
	w.shape = shapeOf(cell.Collective, c.Size(), max(0, cell.Root))
	if cell.Root == EachRoot && cell.Collective.Rooted() {
		w.turns = min(c.Size(), mostRoots)
	}
	if cell.Algorithm != "" {
		w.options = []chorale.Option{chorale.WithAlgorithm(cell.Algorithm)}
	}
	w.call = w.dispatch
	return w
}

// extent returns the blocks of a buffer that this rank has.
func (w *work[T]) extent(b sched.Buffer) sched.Range { return w.shape.Extent(b, w.comm.Rank()) }

// run does the call, and lets the next rank be the root if that goes round.
func (w *work[T]) run(ctx context.Context) error {
	err := w.call(ctx, w.options)
	if w.turns > 1 {
		w.shape.Root = (w.shape.Root + 1) % w.turns
	}
	return err
}

// dispatch does the call. What combines is a sum of float32.
func (w *work[T]) dispatch(ctx context.Context, options []chorale.Option) error {
	switch c, root := w.comm, w.shape.Root; w.shape.Collective {
	case sched.Bcast:
		return chorale.Bcast(ctx, c, w.out, root, options...)
	case sched.Reduce:
		return chorale.Reduce(ctx, c, w.out, w.in, chorale.Sum, root, options...)
	case sched.Scatter:
		return chorale.Scatter(ctx, c, w.out, w.in, root, options...)
	case sched.Gather:
		return chorale.Gather(ctx, c, w.out, w.in, root, options...)
	case sched.AllGather:
		return chorale.AllGather(ctx, c, w.out, w.in, options...)
	case sched.ReduceScatter:
		return chorale.ReduceScatter(ctx, c, w.out, w.in, chorale.Sum, options...)
	case sched.AllReduce:
		return chorale.AllReduce(ctx, c, w.out, w.in, chorale.Sum, options...)
	case sched.AllToAll:
		return chorale.AllToAll(ctx, c, w.out, w.in, options...)
	case sched.Scan:
		return chorale.Scan(ctx, c, w.out, w.in, chorale.Sum, options...)
	case sched.ExScan:
		return chorale.ExScan(ctx, c, w.out, w.in, chorale.Sum, options...)
	case sched.Barrier:
		return chorale.Barrier(ctx, c, options...)
	case sched.Shift:
		return chorale.Shift(ctx, c, w.out, w.in, root, options...)
	}
	return fmt.Errorf("no call for %v", w.shape.Collective)
}
