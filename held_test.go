package chorale_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/chorale-go/chorale"
)

// Two buffers of a rank are at most this long in these tests.
const longest = 1 << 16

func TestProgramsOfCachedCallsAreBoundedInBytes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes programs of 10,000 steps")
	}
	onRanks(t, 3, func(ctx context.Context, c *chorale.Comm) error {
		inside := c.Rank() == 1 // of the chain: it receives and sends
		bcast := func(n, segment int) error {
			return chorale.Bcast(ctx, c, make([]byte, n), 0, chorale.WithAlgorithm(fmt.Sprintf("chain,segment=%d", segment)))
		}
		for i := range 10 { // each has some 10,000 steps
			if err := bcast(10000+i, 1); err != nil {
				return err
			}
			if got := c.Held(); got.Programs > chorale.KeptBytes || got.Programs <= 0 || got.Calls > i+1 {
				return fmt.Errorf("%d calls of %d bytes are kept, want at most %d bytes", got.Calls, got.Programs, chorale.KeptBytes)
			}
		}
		if got := c.Held(); inside && (got.Calls > 8 || got.Programs < chorale.KeptBytes/2) {
			return fmt.Errorf("%d calls of %d bytes are kept: the bound of %d was not reached", got.Calls, got.Programs, chorale.KeptBytes)
		}
		// A call that is larger than the bound is kept alone.
		for range 2 {
			if err := bcast(60000, 1); err != nil {
				return err
			}
			if got := c.Held(); inside && (got.Calls != 1 || got.Programs <= chorale.KeptBytes) {
				return fmt.Errorf("%d calls of %d bytes are kept, want one large call", got.Calls, got.Programs)
			}
		}
		return chorale.Barrier(ctx, c)
	})
}

// callsThatCompute are calls that need memory of their own.
var callsThatCompute = map[string]func(ctx context.Context, c *chorale.Comm, dst, src []int64) error{
	"reduce": func(ctx context.Context, c *chorale.Comm, dst, src []int64) error {
		return chorale.Reduce(ctx, c, dst, src, chorale.Sum, 0)
	},
	"allreduce in place": func(ctx context.Context, c *chorale.Comm, dst, src []int64) error {
		return chorale.AllReduce(ctx, c, dst, dst, chorale.Sum)
	},
	"allreduce by the caller's operation": func(ctx context.Context, c *chorale.Comm, dst, src []int64) error {
		return chorale.AllReduceFunc(ctx, c, dst, src, chorale.Op[int64]{Combine: func(a, b int64) int64 { return a + b }})
	},
	"scan": func(ctx context.Context, c *chorale.Comm, dst, src []int64) error {
		return chorale.Scan(ctx, c, dst, src, chorale.Sum)
	},
	"exscan": func(ctx context.Context, c *chorale.Comm, dst, src []int64) error {
		// One algorithm at all lengths: those of the selection need memory on different ranks.
		return chorale.ExScan(ctx, c, dst, src, chorale.Sum, chorale.WithAlgorithm("linear"))
	},
	"alltoall in place": func(ctx context.Context, c *chorale.Comm, dst, src []int64) error {
		n := len(dst) / c.Size() * c.Size()
		return chorale.AllToAll(ctx, c, dst[:n], dst[:n])
	},
	"alltoall on a mesh, padded": func(ctx context.Context, c *chorale.Comm, dst, src []int64) error {
		n := len(dst) / c.Size() * c.Size()
		return chorale.AllToAll(ctx, c, dst[:n], src[:n], chorale.WithAlgorithm("hypercube"))
	},
}

func TestMemoryOfCallsIsThatOfTheLargestCall(t *testing.T) {
	shorter := 200 // calls
	if testing.Short() {
		shorter = 20
	}
	for name, call := range callsThatCompute {
		t.Run(name, func(t *testing.T) {
			onRanks(t, 4, func(ctx context.Context, c *chorale.Comm) error {
				dst, src := make([]int64, longest), make([]int64, longest)
				if err := call(ctx, c, dst, src); err != nil {
					return err
				}
				most := c.Held().Memory
				if most > 4*8*longest {
					return fmt.Errorf("%d bytes for vectors of %d", most, 8*longest)
				}
				for n := range shorter {
					if err := call(ctx, c, dst[n*200:], src[n*200:]); err != nil {
						return err
					}
				}
				if got := c.Held().Memory; got != most {
					return fmt.Errorf("%d bytes are kept after shorter calls, want %d as after the longest", got, most)
				}
				return nil
			})
		})
	}
}

func TestAlternatingLargeCallsAllocateNothing(t *testing.T) {
	var bufs [3][2][]int64
	for i := range bufs {
		bufs[i] = [2][]int64{make([]int64, longest), make([]int64, longest)}
	}
	if got := steadyAllocs(t, 3, func(ctx context.Context, c *chorale.Comm) error {
		for n := 1; n <= 4; n++ {
			dst, src := bufs[c.Rank()][0][:longest/n], bufs[c.Rank()][1][:longest/n]
			if err := callsThatCompute["scan"](ctx, c, dst, src); err != nil {
				return err
			}
			if err := callsThatCompute["allreduce in place"](ctx, c, dst, src); err != nil {
				return err
			}
		}
		return nil
	}); got != 0 {
		t.Errorf("%v allocations on 3 ranks, want 0", got)
	}
}

func TestFreedCommunicatorKeepsNothing(t *testing.T) {
	onRanks(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		d, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		v := make([]int64, 1000)
		scan := func(ctx context.Context, c *chorale.Comm) error {
			return callsThatCompute["allreduce by the caller's operation"](ctx, c, v, v)
		}
		p, err := chorale.Prepare(d, scan)
		if err != nil {
			return err
		}
		p.Start(ctx)
		if err := p.Wait(); err != nil {
			return err
		}
		if err := scan(ctx, d); err != nil {
			return err
		}
		if err := chorale.Start(ctx, d, scan).Wait(); err != nil {
			return err
		}
		if _, err := d.Dup(ctx); err != nil {
			return err
		}
		if got := d.Held(); got.Calls != 5 || got.Memory == 0 || got.Programs == 0 {
			return fmt.Errorf("%+v is kept, want 5 calls and their memory", got)
		}
		d.Free()
		if got := d.Held(); got.Calls != 0 || got.Memory != 0 || got.Programs != 0 {
			return fmt.Errorf("%+v is kept after Free", got)
		}
		return nil
	})
}
