package bench

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"unsafe"

	"github.com/chorale-go/chorale"
	"github.com/chorale-go/chorale/sched"
)

// An element is a type that collectives are measured with: float32 for reductions,
// byte otherwise.
type element interface{ byte | float32 }

// memory is a rank's two buffers, which all cells use.
type memory struct {
	in, out []byte
	from    *chorale.Comm // allocates them; nil for memory of make
}

// page is the granularity of buffers: no two ranks' buffers share a page or a cache
// line.
const page = 4096

// reserve makes the buffer n bytes long or longer. New memory is written to, so that
// its pages exist.
func reserve(buf *[]byte, n int) {
	if len(*buf) < n || *buf == nil {
		*buf = bytes.Repeat([]byte{1}, (n+page)/page*page)
	}
}

// reserve makes the buffers long enough for a cell on this rank of c, whatever rank
// is the root.
func (m *memory) reserve(cell Cell, c *chorale.Comm) error {
	var in, out int
	switch {
	case cell.Form == columns:
		n := cell.Bytes * max(c.Size(), columnStride)
		in, out = n, n
	case cell.Pattern != "":
		in, out = slots(cell.Pattern)
		in, out = in*cell.Bytes, out*cell.Bytes
	default:
		shape, longest := shapeOf(cell.Collective, c.Size(), c.Rank()), cell.longestPart()
		in, out = shape.Extent(sched.In, c.Rank()).Len()*longest, shape.Extent(sched.Out, c.Rank()).Len()*longest
	}
	return cmp.Or(m.makeBuffer(&m.in, in), m.makeBuffer(&m.out, out))
}

// makeBuffer makes a buffer n bytes long or longer.
func (m *memory) makeBuffer(buf *[]byte, n int) error {
	if m.from == nil {
		reserve(buf, n)
		return nil
	}
	if len(*buf) >= n && *buf != nil {
		return nil
	}
	if err := chorale.Free(m.from, *buf); err != nil {
		return err
	}
	all, err := chorale.Alloc[byte](m.from, (n+page)/page*page)
	for i := range all {
		all[i] = 1
	}
	*buf = all
	return err
}

// elements returns the first n elements of a buffer.
func elements[T element](buf []byte, n int) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(buf))), n)
}

// work is a cell's call on one rank, with its buffers.
type work[T element] struct {
	comm    *chorale.Comm
	shape   sched.Schedule // the collective; Root is that of the next call
	roots   int            // the root rotates over ranks 0 to roots-1; 1 for a fixed root
	count   int            // elements of a block: a part, or the whole vector; of an uneven form, on average
	uneven  bool           // parts differ in length: see start
	lengths []int          // of the parts of an uneven form
	op      chorale.Op[T]
	in, out []T // as long as a root needs them

	buffersOf [][2][]T // of an uneven form, by the root: see buffers

	call    func(ctx context.Context, options []chorale.Option) error
	options []chorale.Option
}

// shapeOf returns a schedule without programs. It defines the collective: the blocks
// that each rank has before and after, one per rank or a single one.
func shapeOf(c sched.Collective, p, root int) sched.Schedule {
	s := sched.Schedule{Collective: c, P: p, Blocks: 1}
	switch {
	case s.Partitioned():
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

// maxRoots bounds the ranks over which the root rotates, so that each has been the
// root before the measurement begins.
const maxRoots = 16

func newWork[T element](c *chorale.Comm, cell Cell, m *memory) *work[T] {
	w := &work[T]{comm: c, roots: 1, count: cell.Bytes / cell.element(), uneven: cell.Form == uneven, op: operationOf[T](cell.Form)}
	w.shape = shapeOf(cell.Collective, c.Size(), c.Rank()) // the buffers of a root are long enough for any rank
	w.in = elements[T](m.in, w.length(w.extent(sched.In)))
	w.out = elements[T](m.out, w.length(w.extent(sched.Out)))
	w.shape = shapeOf(cell.Collective, c.Size(), max(0, cell.Root)%c.Size())
	if cell.Root == RotatingRoot && cell.Collective.Rooted() {
		w.roots = min(c.Size(), maxRoots)
	}
	if cell.Algorithm != "" {
		w.options = []chorale.Option{chorale.WithAlgorithm(cell.Algorithm)}
	}
	w.call = func(ctx context.Context, options []chorale.Option) error {
		return w.dispatch(ctx, w.comm, options)
	}
	return w
}

// extent returns the blocks of a buffer that this rank has.
func (w *work[T]) extent(b sched.Buffer) sched.Range { return w.shape.Extent(b, w.comm.Rank()) }

// run makes the call, and then rotates the root.
func (w *work[T]) run(ctx context.Context) error {
	err := w.call(ctx, w.options)
	if w.roots > 1 {
		w.shape.Root = (w.shape.Root + 1) % w.roots
	}
	return err
}

// first returns how many calls compile their programs: the first with each root.
func (w *work[T]) first() int { return w.roots }

// algorithm makes the call once, and returns its algorithm. If that was named, another call
// tells the one that is selected.
func (w *work[T]) algorithm(ctx context.Context) (ran, selected string, err error) {
	var stats chorale.Stats
	if len(w.options) > 0 {
		if err := w.call(ctx, []chorale.Option{chorale.WithStats(&stats)}); err != nil {
			return "", "", err
		}
		selected = stats.Algorithm
	}
	err = w.call(ctx, append(w.options, chorale.WithStats(&stats)))
	return stats.Algorithm, cmp.Or(selected, stats.Algorithm), err
}

// dispatch makes the call on a communicator of the same ranks. Reductions sum float32.
func (w *work[T]) dispatch(ctx context.Context, c *chorale.Comm, options []chorale.Option) error {
	if w.uneven {
		return w.dispatchUneven(ctx, c, options)
	}
	switch root := w.shape.Root; w.shape.Collective {
	case sched.Bcast:
		return chorale.Bcast(ctx, c, w.out, root, options...)
	case sched.Reduce:
		return chorale.ReduceFunc(ctx, c, w.out, w.in, w.op, root, options...)
	case sched.Scatter:
		return chorale.Scatter(ctx, c, w.out, w.in, root, options...)
	case sched.Gather:
		return chorale.Gather(ctx, c, w.out, w.in, root, options...)
	case sched.AllGather:
		return chorale.AllGather(ctx, c, w.out, w.in, options...)
	case sched.ReduceScatter:
		return chorale.ReduceScatterFunc(ctx, c, w.out, w.in, w.op, options...)
	case sched.AllReduce:
		return chorale.AllReduceFunc(ctx, c, w.out, w.in, w.op, options...)
	case sched.AllToAll:
		return chorale.AllToAll(ctx, c, w.out, w.in, options...)
	case sched.Scan:
		return chorale.ScanFunc(ctx, c, w.out, w.in, w.op, options...)
	case sched.ExScan:
		return chorale.ExScanFunc(ctx, c, w.out, w.in, w.op, options...)
	case sched.Barrier:
		return chorale.Barrier(ctx, c, options...)
	case sched.Shift:
		return chorale.Shift(ctx, c, w.out, w.in, root, options...)
	}
	return fmt.Errorf("no call for %v", w.shape.Collective)
}
