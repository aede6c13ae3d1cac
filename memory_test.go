package chorale_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/chorale-go/chorale"
)

// The ranks have allocated and other buffers in all combinations.
func TestCollectivesTakeAllocatedMemory(t *testing.T) {
	onEachTransport(t, 3, func(ctx context.Context, c *chorale.Comm) error {
		p := c.Size()
		for _, n := range []int{0, 1, 1000, 60_000} {
			for choice := range 1 << (2 * p) {
				if n > 1000 && choice%7 > 0 && testing.Short() {
					continue
				}
				buffer := func(bit, n int) ([]int64, error) {
					if choice>>(2*c.Rank()+bit)&1 == 0 {
						return make([]int64, n), nil
					}
					return chorale.Alloc[int64](c, n)
				}
				src, err := buffer(0, n)
				dst, err2 := buffer(1, p*n)
				if err := errors.Join(err, err2); err != nil {
					return err
				}
				copy(src, vector(c.Rank(), n))
				if err := chorale.AllReduce(ctx, c, dst[:n], src, chorale.Sum); err != nil {
					return err
				}
				if err := same(c, "the sum", dst[:n], total(p, n)); err != nil {
					return err
				}
				if err := chorale.AllGather(ctx, c, dst, src); err != nil {
					return err
				}
				var all []int64
				for rank := range p {
					all = append(all, vector(rank, n)...)
				}
				if err := same(c, "all vectors", dst, all); err != nil {
					return err
				}
				if choice>>(2*c.Rank())&1 != 0 {
					err = chorale.Free(c, src)
				}
				if choice>>(2*c.Rank()+1)&1 != 0 {
					err = errors.Join(err, chorale.Free(c, dst))
				}
				if err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func TestAllocatedMemoryIsFreedOnceWithItsCommunicator(t *testing.T) {
	onEachTransport(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		dup, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		first, err := chorale.Alloc[float32](dup, 1000)
		_, err2 := chorale.Alloc[[3]int](dup, 1<<20)
		world, err3 := chorale.Alloc[byte](c, 100)
		if err := errors.Join(err, err2, err3); err != nil {
			return err
		}
		if err := chorale.AllReduce(ctx, dup, first, first, chorale.Sum); err != nil { // computes in allocated memory
			return err
		}
		for what, free := range map[string]func() error{
			"of another communicator": func() error { return chorale.Free(c, first) },
			"the end of it":           func() error { return chorale.Free(dup, first[10:]) },
			"foreign":                 func() error { return chorale.Free(dup, make([]int, 10)) },
		} {
			if err := free(); !errors.Is(err, chorale.ErrArgument) {
				return fmt.Errorf("%s: %v", what, err)
			}
		}
		if err := chorale.Free(dup, first); err != nil {
			return err
		}
		if err := chorale.Free(dup, first); !errors.Is(err, chorale.ErrArgument) {
			return fmt.Errorf("freed twice: %v", err)
		}
		dup.Free()
		if err := chorale.Free(c, world); err != nil {
			return err
		}
		if held := c.Held().Endpoint.Allocated; held != 0 {
			return fmt.Errorf("everything is freed, and %d bytes are held", held)
		}
		if _, err := chorale.Alloc[byte](dup, 1); !errors.Is(err, chorale.ErrClosed) {
			return fmt.Errorf("on a freed communicator: %v", err)
		}
		return chorale.Barrier(ctx, c)
	})
}

func TestAllocChecksItsArguments(t *testing.T) {
	onRanks(t, 1, func(_ context.Context, c *chorale.Comm) error {
		_, pointers := chorale.Alloc[*int](c, 1)
		_, negative := chorale.Alloc[int](c, -1)
		_, most := chorale.Alloc[int](c, math.MaxInt)
		for what, err := range map[string]error{"pointers": pointers, "-1 elements": negative, "too many": most} {
			if !errors.Is(err, chorale.ErrArgument) {
				t.Errorf("%s: %v", what, err)
			}
		}
		for _, err := range []error{chorale.Free(c, []int(nil)), chorale.Free(c, []struct{}{{}})} {
			if err != nil {
				t.Errorf("no memory is freed: %v", err)
			}
		}
		if b, err := chorale.Alloc[struct{}](c, 5); err != nil || len(b) > 5 {
			t.Errorf("empty elements: %d, %v", len(b), err)
		}
		return nil
	})
	if _, err := chorale.Alloc[int](nil, 1); !errors.Is(err, chorale.ErrArgument) {
		t.Errorf("on no communicator: %v", err)
	}
}
