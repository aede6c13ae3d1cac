package bench

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/chorale-go/chorale"
	"github.com/chorale-go/chorale/sched"
)

// An element is a type that collectives are measured with: float32 where they
// sum, else byte.
type element interface{ byte | float32 }

// memory is a rank's two buffers. All cells use the same, so that measuring
// makes no garbage.
type memory[T element] struct{ in, out []T }

// page is enough that no two ranks' buffers share a cache line or a page.
const page = 4096

// reserve sees to it that there are so many elements. New memory is touched.
func reserve[T element](buf *[]T, n int) []T {
	if len(*buf) < n || *buf == nil {
		size := int(unsafe.Sizeof(*new(T)))
		pages := (n*size + page) / page
		*buf = make([]T, pages*page/size)
		for i := range *buf {
			(*buf)[i] = 1
		}
	}
	return (*buf)[:n]
}

// work is a cell's call on one rank, with its buffers.
type work[T element] struct {
	comm    *chorale.Comm
	shape   sched.Schedule
	count   int // elements of a block: a part, or the whole vector
	in, out []T
	call    func(ctx context.Context, options []chorale.Option) error
	options []chorale.Option
}

// shapeOf returns a schedule without programs, of which it can be asked what the
// collective is: a block per rank, or just one.
func shapeOf(c sched.Collective, p int) sched.Schedule {
	s := sched.Schedule{Collective: c, P: p, Blocks: 1}
	switch {
	case s.Parted():
		s.Blocks = p
	case c == sched.Barrier:
		s.Blocks = 0
	case c == sched.Shift:
		s.Root = 1 % p
	}
	return s
}

func newWork[T element](c *chorale.Comm, cell Cell, m *memory[T]) *work[T] {
	w := &work[T]{comm: c, shape: shapeOf(cell.Collective, c.Size()), count: cell.Bytes / cell.element()}
	if cell.Algorithm != "" {
		w.options = []chorale.Option{chorale.WithAlgorithm(cell.Algorithm)}
	}
	w.in = reserve(&m.in, w.extent(sched.In).Len()*w.count)
	w.out = reserve(&m.out, w.extent(sched.Out).Len()*w.count)
	if cell.Collective == sched.Bcast && c.Rank() == w.shape.Root {
		w.in = w.out // a broadcast has one buffer
	}
	w.call = callOf(w)
	return w
}

// extent returns the blocks of a buffer that this rank has.
func (w *work[T]) extent(b sched.Buffer) sched.Range { return w.shape.Extent(b, w.comm.Rank()) }

// run does the call.
func (w *work[T]) run(ctx context.Context) error { return w.call(ctx, w.options) }

// callOf returns the call of w. Those that combine are sums of float32.
func callOf[T element](w *work[T]) func(ctx context.Context, options []chorale.Option) error {
	c, in, out, root := w.comm, w.in, w.out, w.shape.Root
	return func(ctx context.Context, options []chorale.Option) error {
		switch w.shape.Collective {
		case sched.Bcast:
			return chorale.Bcast(ctx, c, out, root, options...)
		case sched.Reduce:
			return chorale.Reduce(ctx, c, out, in, chorale.Sum, root, options...)
		case sched.Scatter:
			return chorale.Scatter(ctx, c, out, in, root, options...)
		case sched.Gather:
			return chorale.Gather(ctx, c, out, in, root, options...)
		case sched.AllGather:
			return chorale.AllGather(ctx, c, out, in, options...)
		case sched.ReduceScatter:
			return chorale.ReduceScatter(ctx, c, out, in, chorale.Sum, options...)
		case sched.AllReduce:
			return chorale.AllReduce(ctx, c, out, in, chorale.Sum, options...)
		case sched.AllToAll:
			return chorale.AllToAll(ctx, c, out, in, options...)
		case sched.Scan:
			return chorale.Scan(ctx, c, out, in, chorale.Sum, options...)
		case sched.ExScan:
			return chorale.ExScan(ctx, c, out, in, chorale.Sum, options...)
		case sched.Barrier:
			return chorale.Barrier(ctx, c, options...)
		case sched.Shift:
			return chorale.Shift(ctx, c, out, in, root, options...)
		}
		return fmt.Errorf("no call for %v", w.shape.Collective)
	}
}
