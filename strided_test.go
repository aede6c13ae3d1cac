package chorale_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/chorale-go/chorale"
)

// A shape is that of a view, without its data.
type shape struct{ block, stride, count int }

func drawShape(t *rapid.T, name string, n int) shape {
	blocks := rapid.SampledFrom(divisors(n)).Draw(t, name+" blocks")
	s := shape{count: blocks}
	if blocks > 0 {
		s.block = n / blocks
	}
	s.stride = s.block + rapid.IntRange(0, 9).Draw(t, name+" gap")
	return s
}

// divisors returns the divisors of n, and 0 and some numbers for 0.
func divisors(n int) (all []int) {
	if n == 0 {
		return []int{0, 1, 3}
	}
	for d := 1; d <= n; d++ {
		if n%d == 0 {
			all = append(all, d)
		}
	}
	return all
}

// view returns a view of new memory, filled with value.
func view[T any](s shape, value T) chorale.Strided[T] {
	data := make([]T, s.count*s.stride+3)
	for i := range data {
		data[i] = value
	}
	return chorale.Strided[T]{Data: data, Block: s.block, Stride: s.stride, Count: s.count}
}

// places returns the indices of a view's elements in its data, in order.
func places[T any](v chorale.Strided[T]) (all []int) {
	for i := range v.Count {
		for j := range v.Block {
			all = append(all, i*v.Stride+j)
		}
	}
	return all
}

// byHand returns a view's elements, packed one by one.
func byHand[T any](v chorale.Strided[T]) []T {
	all := make([]T, 0, v.Len())
	for _, i := range places(v) {
		all = append(all, v.Data[i])
	}
	return all
}

// received returns an error unless the view has the elements, and untouched memory
// between and after them.
func received[T comparable](c *chorale.Comm, what string, v chorale.Strided[T], want []T, untouched T) error {
	if err := same(c, what, byHand(v)[:len(want)], want); err != nil {
		return err
	}
	written := places(v)[:len(want)]
	for i, x := range v.Data {
		if _, found := slices.BinarySearch(written, i); !found && x != untouched {
			return fmt.Errorf("rank %d: %s: element %d of Data, which is in no block, became %v", c.Rank(), what, i, x)
		}
	}
	return nil
}

// A stridedJob is the calls of one job, drawn at random.
type stridedJob struct {
	p, n, root int
	in, out    shape // of n elements
	longer     int   // elements that a receive may take beyond n
	rows, gap  int   // of the matrix: rows of p parts
}

func TestViewsAreWhatPackingByHandGives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(transports).Draw(t, "transport")
		j := stridedJob{p: rapid.IntRange(1, 5).Draw(t, "p")}
		j.n = rapid.SampledFrom([]int{0, 1, 2, 12, 60, 1000, 30_000}).Draw(t, "elements")
		j.root = rapid.IntRange(0, j.p-1).Draw(t, "root")
		j.in, j.out = drawShape(t, "src", j.n), drawShape(t, "dst", j.n)
		j.longer = rapid.IntRange(0, 3).Draw(t, "blocks more")
		j.rows, j.gap = rapid.SampledFrom(divisors(j.n)).Draw(t, "rows"), rapid.IntRange(0, 5).Draw(t, "gap")
		run := rapid.SampledFrom([]func(context.Context, *chorale.Comm, stridedJob) error{
			viewsOf(func(seed int) uint8 { return uint8(seed) }),
			viewsOf(func(seed int) int16 { return int16(seed) }),
			viewsOf(func(seed int) float32 { return float32(seed) }),
			viewsOf(func(seed int) int64 { return int64(seed) }),
			viewsOf(func(seed int) complex128 { return complex(float64(seed), 1) }),
			viewsOf(func(seed int) [3]int32 { return [3]int32{int32(seed), 1, 2} }),
			viewsOf(func(seed int) [3]uint8 { return [3]uint8{uint8(seed)} }),
		}).Draw(t, "type")
		onTransport(t, name, j.p, func(ctx context.Context, c *chorale.Comm) error { return run(ctx, c, j) })
	})
}

// viewsOf returns the calls of a job, with elements that value makes.
func viewsOf[T comparable](value func(seed int) T) func(context.Context, *chorale.Comm, stridedJob) error {
	return func(ctx context.Context, c *chorale.Comm, j stridedJob) error {
		return errors.Join(messagesOfViews(ctx, c, j, value), columnsOfViews(ctx, c, j, value))
	}
}

func messagesOfViews[T comparable](ctx context.Context, c *chorale.Comm, j stridedJob, value func(seed int) T) error {
	next, before := (c.Rank()+1)%j.p, (c.Rank()+j.p-1)%j.p
	sent := func(rank int) chorale.Strided[T] {
		v := view(j.in, value(-1))
		for i := range v.Data {
			v.Data[i] = value(100*rank + i)
		}
		return v
	}
	longer := j.out
	longer.count += j.longer
	dst := view(longer, value(-7))
	status, err := chorale.SendRecvStrided(ctx, c, dst, before, sent(c.Rank()), next, 3)
	if err == nil && status != (chorale.Status{From: before, Tag: 3, Count: j.n}) {
		err = fmt.Errorf("the status is %+v", status)
	}
	if err := errors.Join(err, received(c, "SendRecvStrided", dst, byHand(sent(before)), value(-7))); err != nil || j.p == 1 {
		return err
	}
	// From a view to a slice, and from a slice to a view.
	flat, dst := make([]T, j.n), view(j.out, value(-7))
	if c.Rank() == 0 {
		_, err := chorale.RecvStrided(ctx, c, dst, j.p-1, 1)
		return errors.Join(err,
			received(c, "RecvStrided", dst, byHand(sent(j.p-1)), value(-7)),
			chorale.SendStrided(ctx, c, sent(0), 1, 1))
	}
	if c.Rank() == j.p-1 {
		if err := chorale.Send(ctx, c, byHand(sent(j.p-1)), 0, 1); err != nil {
			return err
		}
	}
	if c.Rank() == 1 {
		_, err := chorale.Recv(ctx, c, flat, 0, 1)
		return errors.Join(err, same(c, "SendStrided", flat, byHand(sent(0))))
	}
	return nil
}

func columnsOfViews[T comparable](ctx context.Context, c *chorale.Comm, j stridedJob, value func(seed int) T) error {
	width := 0 // of a rank's part of a row
	if j.rows > 0 {
		width = j.n / j.rows
	}
	matrix := shape{width * j.p, width*j.p + j.gap, j.rows}
	src := view(matrix, value(-1))
	for i := range src.Data {
		src.Data[i] = value(i)
	}
	var mine []T
	for i := range j.rows {
		for k := range width {
			mine = append(mine, src.Data[i*matrix.stride+c.Rank()*width+k])
		}
	}
	part := view(j.out, value(-7))
	all := src
	if c.Rank() != j.root {
		all = chorale.Strided[T]{Block: -1} // is ignored
	}
	if err := errors.Join(chorale.ScatterStrided(ctx, c, part, all, j.root), received(c, "ScatterStrided", part, mine, value(-7))); err != nil {
		return err
	}
	all = view(matrix, value(-7))
	if err := chorale.GatherStrided(ctx, c, all, part, j.root); err != nil || c.Rank() != j.root {
		return err
	}
	return received(c, "GatherStrided", all, byHand(src), value(-7))
}

func TestWrongViewsAreErrors(t *testing.T) {
	data := make([]int, 20)
	for _, test := range []struct {
		view chorale.Strided[int]
		want string
	}{
		{chorale.Strided[int]{data, -1, 4, 2}, "a view of 2 blocks of -1 elements: want 0 or more"},
		{chorale.Strided[int]{data, 1, 4, -2}, "a view of -2 blocks of 1 elements: want 0 or more"},
		{chorale.Strided[int]{data, 3, 2, 2}, "a view of blocks of 3 elements with a stride of 2: they overlap; want a stride of 3 or more"},
		{chorale.Strided[int]{data, 3, -4, 2}, "a view of blocks of 3 elements with a stride of -4: they overlap; want a stride of 3 or more"},
		{chorale.Strided[int]{data, 21, 30, 1}, "a view of blocks of 21 elements: Data has 20"},
		{chorale.Strided[int]{data, 2, 5, 5}, "a view of 5 blocks of 2 elements with a stride of 5: Data has 20 elements, which hold 4 blocks"},
		{chorale.Strided[int]{data, 2, 1 << 62, 3}, "a view of 3 blocks of 2 elements with a stride of 4611686018427387904: Data has 20 elements, which hold 1 blocks"},
		{chorale.Strided[int]{nil, 2, 5, 1 << 62}, "a view of blocks of 2 elements: Data has 0"},
	} {
		onRanks(t, 2, func(ctx context.Context, c *chorale.Comm) error {
			right := chorale.Contiguous(data[:2])
			_, recv := chorale.RecvStrided(ctx, c, test.view, 1-c.Rank(), 0)
			_, sendRecv := chorale.SendRecvStrided(ctx, c, right, 1-c.Rank(), test.view, 1-c.Rank(), 0)
			for call, err := range map[string]error{
				"send": chorale.SendStrided(ctx, c, test.view, 1-c.Rank(), 0), "recv": recv, "send ": sendRecv,
				"scatter": chorale.ScatterStrided(ctx, c, test.view, right, 0),
				"gather":  chorale.GatherStrided(ctx, c, right, test.view, 1),
			} {
				want := fmt.Sprintf("chorale: %s on rank %d: %s", strings.TrimSpace(call), c.Rank(), test.want)
				if !errors.Is(err, chorale.ErrArgument) || err.Error() != want {
					t.Errorf("%s: the error is %v, want %s", call, err, want)
				}
			}
			return chorale.Barrier(ctx, c) // the communicator stays usable
		})
	}
}

func TestColumnsThatTheRanksDoNotDivideAreAnError(t *testing.T) {
	onRanks(t, 3, func(ctx context.Context, c *chorale.Comm) error {
		matrix := make([]int, 40)
		for want, src := range map[string]chorale.Strided[int]{
			"src has blocks of 4 elements: want a part as long for each of 3 ranks": {Data: matrix, Block: 4, Stride: 8, Count: 4},
			"src has 12 elements: want 24, 3 ranks times the 8 of dst":              {Data: matrix, Block: 3, Stride: 8, Count: 4},
		} {
			err := chorale.ScatterStrided(ctx, c, chorale.Contiguous(make([]int, 8)), src, c.Rank()) // each has a root of its own
			if !errors.Is(err, chorale.ErrArgument) || !strings.HasSuffix(err.Error(), want) {
				return fmt.Errorf("the error is %v, want %s", err, want)
			}
		}
		return chorale.Barrier(ctx, c)
	})
}

func TestMemoryOfViewsIsBoundedAndFreed(t *testing.T) {
	onRanks(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		d, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		const n = 1000
		views := make([]chorale.Strided[int64], 16)
		for i := range views {
			views[i] = chorale.Strided[int64]{Data: make([]int64, 2*n), Block: 1, Stride: 2, Count: n}
		}
		calls := make(chan error)
		for i := range len(views) / 2 { // more at a time than are kept
			go func() {
				_, err := chorale.SendRecvStrided(ctx, d, views[2*i], 1-d.Rank(), views[2*i+1], 1-d.Rank(), i)
				calls <- err
			}()
		}
		for range len(views) / 2 {
			err = errors.Join(err, <-calls)
		}
		if got := d.Held().Memory; got < 8*n || got > 4*(8*n+64) {
			err = errors.Join(err, fmt.Errorf("%d bytes are kept, want those of 4 views at most", got))
		}
		d.Free()
		if got := d.Held().Memory; got != 0 {
			err = errors.Join(err, fmt.Errorf("%d bytes are kept after Free", got))
		}
		return err
	})
}
