package chorale

import (
	"context"
	"fmt"
	"reflect"
	"unsafe"

	"github.com/chorale-go/chorale/internal/exec"
	"github.com/chorale-go/chorale/internal/kernel"
	"github.com/chorale-go/chorale/sched"
)

// A Strided is a view of elements that lie in blocks at equal distances: a column of a
// matrix, a tile of it, or every third element. In MPI it is a vector type.
//
//	column := chorale.Strided[float64]{Data: a[j:], Block: 1, Stride: columns, Count: rows}
//
// A view is passed to [SendStrided], [RecvStrided], [SendRecvStrided],
// [ScatterStrided] or [GatherStrided]. These are functions of their own because Go
// infers T from one form of an argument alone: either a slice or a view.
//
// A message holds the elements without the gaps, so that either end may be a view, of
// any shape, or a slice. Calls copy elements to and from memory that the communicator
// keeps, unless they already lie one after another: see [Comm.Held].
type Strided[T any] struct {
	Data   []T // begins with the first block; what follows the last one does not matter
	Block  int // elements of each block
	Stride int // elements from the beginning of a block to that of the next; Block or more
	Count  int // blocks
}

// Contiguous returns the view of a whole slice.
func Contiguous[T any](s []T) Strided[T] {
	return Strided[T]{Data: s, Block: len(s), Stride: len(s), Count: 1}
}

// Len returns the number of elements in the blocks.
func (v Strided[T]) Len() int { return v.Block * v.Count }

// check returns what is wrong with a view.
func (v Strided[T]) check() error {
	n := len(v.Data)
	switch {
	case v.Block < 0 || v.Count < 0:
		return fmt.Errorf("a view of %d blocks of %d elements: want 0 or more", v.Count, v.Block)
	case v.Block == 0 || v.Count == 0:
		return nil
	case v.Block > n:
		return fmt.Errorf("a view of blocks of %d elements: Data has %d", v.Block, n)
	case v.Count == 1:
		return nil
	case v.Stride < v.Block:
		return fmt.Errorf("a view of blocks of %d elements with a stride of %d: they overlap; want a stride of %d or more", v.Block, v.Stride, v.Block)
	case v.Count-1 > (n-v.Block)/v.Stride:
		return fmt.Errorf("a view of %d blocks of %d elements with a stride of %d: Data has %d elements, which hold %d blocks", v.Count, v.Block, v.Stride, n, (n-v.Block)/v.Stride+1)
	}
	return nil
}

// contiguous reports whether the elements lie one after another.
func (v Strided[T]) contiguous() bool {
	return v.Len() == 0 || v.Count == 1 || v.Stride == v.Block
}

// part returns the view of a part of each block: elements lo to lo+n.
func (v Strided[T]) part(lo, n int) Strided[T] {
	if n > 0 && v.Count > 0 {
		v.Data = v.Data[lo:]
	}
	v.Block = n
	return v
}

// pack copies the elements of the view to dst.
func (v Strided[T]) pack(dst []T) {
	size := int(unsafe.Sizeof(*new(T)))
	kernel.Pack(bytesOf(dst), bytesOf(v.Data), v.Block*size, v.Stride*size)
}

// unpack copies src, which may be shorter than the view, to the elements of the view.
func (v Strided[T]) unpack(src []T) {
	size := int(unsafe.Sizeof(*new(T)))
	kernel.Unpack(bytesOf(v.Data), bytesOf(src), v.Block*size, v.Stride*size)
}

// A flatView is the elements of a view one after another: those of the view itself, or
// memory of the communicator.
type flatView[T any] struct {
	elements []T
	memory   *exec.Memory // nil if the elements are those of the view
	view     Strided[T]
}

// flatten returns the elements of a view, which are not packed yet. The caller frees it.
func flatten[T any](c *Comm, v Strided[T]) flatView[T] {
	if v.contiguous() {
		return flatView[T]{elements: v.Data[:v.Len()], view: v}
	}
	memory := c.packing.take()
	return flatView[T]{elements: elementsIn[T](memory, v.Len()), memory: memory, view: v}
}

// elementsIn returns memory for n elements.
func elementsIn[T any](memory *exec.Memory, n int) []T {
	bytes := memory.AtLeast(max(1, n*int(unsafe.Sizeof(*new(T)))))
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(bytes))), n)
}

func (f *flatView[T]) pack() {
	if f.memory != nil {
		f.view.pack(f.elements)
	}
}

// unpack writes the first n elements to the view.
func (f *flatView[T]) unpack(n int) {
	if f.memory != nil {
		f.view.unpack(f.elements[:n])
	}
}

// free returns the memory to the communicator.
func (f *flatView[T]) free(c *Comm) {
	if f.memory != nil {
		c.packing.put(f.memory)
	}
}

// checkView returns an argument error unless the elements of a view can be sent.
func checkView[T any](c *Comm, call string, v Strided[T]) error {
	if c == nil {
		return c.unusable(call)
	}
	err := checkElement(reflect.TypeFor[T]())
	if err == nil {
		err = v.check()
	}
	if err != nil {
		return c.argumentErrorf(call, "%w", err)
	}
	return nil
}

// SendStrided is [Send] of the elements of a view.
func SendStrided[T any](ctx context.Context, c *Comm, src Strided[T], to, tag int) error {
	if err := checkView(c, "send", src); err != nil {
		return err
	}
	flat := flatten(c, src)
	defer flat.free(c)
	flat.pack()
	return Send(ctx, c, flat.elements, to, tag)
}

// RecvStrided is [Recv] into the elements of a view. A message that is shorter than the
// view fills its beginning.
func RecvStrided[T any](ctx context.Context, c *Comm, dst Strided[T], from, tag int) (Status, error) {
	if err := checkView(c, "recv", dst); err != nil {
		return Status{}, err
	}
	flat := flatten(c, dst)
	defer flat.free(c)
	s, err := Recv(ctx, c, flat.elements, from, tag)
	if err == nil {
		flat.unpack(s.Count)
	}
	return s, err
}

// SendRecvStrided is [SendRecv] of the elements of one view into those of another. Both
// may be views of the same matrix that have no element in common.
func SendRecvStrided[T any](ctx context.Context, c *Comm, dst Strided[T], from int, src Strided[T], to, tag int) (Status, error) {
	if err := checkView(c, "recv", dst); err != nil {
		return Status{}, err
	}
	if err := checkView(c, "send", src); err != nil {
		return Status{}, err
	}
	in, out := flatten(c, dst), flatten(c, src)
	defer in.free(c)
	defer out.free(c)
	out.pack()
	s, err := SendRecv(ctx, c, in.elements, from, out.elements, to, tag)
	if err == nil {
		in.unpack(s.Count)
	}
	return s, err
}

// ScatterStrided is [Scatter] of columns. Each block of the root's src, which is a row
// of a matrix, has a part for each rank, and the parts of a row are equally long: rank r
// gets part r of every block, block after block. So dst of each rank has 1/Size of
// the elements of src. Dst and src have no element in common. On other ranks src is
// ignored.
func ScatterStrided[T any](ctx context.Context, c *Comm, dst, src Strided[T], root int, options ...Option) error {
	isRoot := c.Rank() == root
	if err := checkColumns(c, sched.Scatter, "src", src, "dst", dst, isRoot); err != nil {
		return err
	}
	part := flatten(c, dst)
	defer part.free(c)
	var whole []T
	if isRoot {
		memory := c.packing.take()
		defer c.packing.put(memory)
		whole = elementsIn[T](memory, src.Len())
		for r := range c.size {
			ofRank(src, c.size, r).pack(whole[r*dst.Len():][:dst.Len()])
		}
	}
	err := Scatter(ctx, c, part.elements, whole, root, options...)
	if err == nil {
		part.unpack(dst.Len())
	}
	return err
}

// GatherStrided is [Gather] of columns, and the inverse of [ScatterStrided]: each block
// of the root's dst, which is a row of a matrix, has a part for each rank, and src of
// rank r becomes part r of every block, block after block. So src of each rank has 1/Size
// of the elements of dst. On other ranks dst is ignored.
func GatherStrided[T any](ctx context.Context, c *Comm, dst, src Strided[T], root int, options ...Option) error {
	isRoot := c.Rank() == root
	if err := checkColumns(c, sched.Gather, "dst", dst, "src", src, isRoot); err != nil {
		return err
	}
	part := flatten(c, src)
	defer part.free(c)
	part.pack()
	var whole []T
	if isRoot {
		memory := c.packing.take()
		defer c.packing.put(memory)
		whole = elementsIn[T](memory, dst.Len())
	}
	err := Gather(ctx, c, whole, part.elements, root, options...)
	if err == nil && isRoot {
		for r := range c.size {
			ofRank(dst, c.size, r).unpack(whole[r*src.Len():][:src.Len()])
		}
	}
	return err
}

// ofRank returns rank r's part of every block of a view that p ranks share.
func ofRank[T any](v Strided[T], p, r int) Strided[T] {
	return v.part(r*(v.Block/p), v.Block/p)
}

// checkColumns rejects a call unless its views are right, and those of the root divide
// into one part per rank. The view of the whole counts on the root alone.
func checkColumns[T any](c *Comm, collective sched.Collective, wholeName string, whole Strided[T], partName string, part Strided[T], isRoot bool) error {
	if c == nil {
		return c.unusable(collective.String())
	}
	err := checkElement(reflect.TypeFor[T]())
	if err == nil {
		err = part.check()
	}
	if isRoot && err == nil {
		err = whole.check()
		switch {
		case err != nil:
		case whole.Block%c.size != 0:
			err = fmt.Errorf("%s has blocks of %d elements: want a part as long for each of %d ranks", wholeName, whole.Block, c.size)
		case whole.Len() != c.size*part.Len():
			err = fmt.Errorf("%s has %d elements: want %d, %d ranks times the %d of %s", wholeName, whole.Len(), c.size*part.Len(), c.size, part.Len(), partName)
		}
	}
	if err != nil {
		return c.rejectCallf(collective.String(), "%w", err)
	}
	return nil
}
