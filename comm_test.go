package chorale_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/chorale-go/chorale"
)

func TestSplitMakesOneCommunicatorPerColorOrderedByKey(t *testing.T) {
	for _, p := range sizes() {
		onRanks(t, p, func(ctx context.Context, c *chorale.Comm) error {
			// Even and odd ranks apart, in reverse order; every fifth rank in none.
			color := c.Rank() % 2
			if c.Rank()%5 == 4 {
				color = -1
			}
			sub, err := c.Split(ctx, color, -c.Rank())
			if err != nil {
				return err
			}
			if color < 0 {
				if sub != nil {
					return errors.New("a rank without a color got a communicator")
				}
				return nil
			}
			var members []int64
			for rank := p - 1; rank >= 0; rank-- {
				if rank%2 == color && rank%5 != 4 {
					members = append(members, int64(rank))
				}
			}
			got := make([]int64, sub.Size())
			if err := chorale.AllGather(ctx, sub, got, []int64{int64(c.Rank())}); err != nil {
				return err
			}
			sub.Free()
			return same(c, "members", got, members)
		})
	}
}

func TestMessagesOfDifferentCommunicatorsNeverMatch(t *testing.T) {
	onEachTransport(t, 4, func(ctx context.Context, c *chorale.Comm) error {
		one, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		two, err := one.Dup(ctx)
		if err != nil {
			return err
		}
		// Each rank uses the two in its own order.
		call := func(c *chorale.Comm, v []int64) *chorale.Request {
			return chorale.Start(ctx, c, func(ctx context.Context, c *chorale.Comm) error {
				return chorale.AllReduce(ctx, c, v, v, chorale.Sum)
			})
		}
		a, b := vector(c.Rank(), 50), vector(c.Rank()+10, 50)
		var requests []*chorale.Request
		if c.Rank()%2 == 0 {
			requests = append(requests, call(one, a), call(two, b))
		} else {
			requests = append(requests, call(two, b), call(one, a))
		}
		if err := chorale.WaitAll(requests...); err != nil {
			return err
		}
		return errors.Join(
			same(c, "one", a[:2], []int64{6000, 6004}),
			same(c, "two", b[:2], []int64{46000, 46004}),
		)
	})
}

func TestFreedCommunicatorsUseNoMemory(t *testing.T) {
	const warm, most = 500, 1 << 20
	var before uint64
	onRanks(t, 3, func(ctx context.Context, c *chorale.Comm) error {
		for i := range 3000 {
			if i == warm && c.Rank() == 0 {
				before = heap()
			}
			sub, err := c.Split(ctx, c.Rank()%2, 0)
			if err != nil {
				return fmt.Errorf("communicator %d: %w", i, err)
			}
			sum := []int{1}
			if err := chorale.AllReduce(ctx, sub, sum, sum, chorale.Sum); err != nil {
				return err
			}
			if sum[0] != sub.Size() {
				return fmt.Errorf("communicator %d: sum %d, want %d", i, sum[0], sub.Size())
			}
			sub.Free()
		}
		if c.Rank() == 0 {
			if after := heap(); after > before+most {
				return fmt.Errorf("the heap grew from %d to %d bytes", before, after)
			}
		}
		return nil
	})
}

// heap returns how many bytes are in use.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A rank may free a communicator while others still receive what it has sent.
func TestFreeDoesNotWaitForOtherRanks(t *testing.T) {
	onEachTransport(t, 3, func(ctx context.Context, c *chorale.Comm) error {
		for i := range 200 {
			sub, err := c.Dup(ctx)
			if err != nil {
				return err
			}
			v := []int{i}
			if c.Rank() == 2 { // the others have sent, received and freed by then
				if err := chorale.Barrier(ctx, c); err != nil {
					return err
				}
			}
			if err := chorale.Gather(ctx, sub, make([]int, 3), v, 2, chorale.WithAlgorithm("linear")); err != nil {
				return err
			}
			sub.Free()
			if c.Rank() != 2 {
				if err := chorale.Barrier(ctx, c); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func TestFreedCommunicatorIsClosed(t *testing.T) {
	onEachTransport(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		sub, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		sub.Free()
		sub.Free()
		if err := chorale.Barrier(ctx, sub); !errors.Is(err, chorale.ErrClosed) {
			return fmt.Errorf("got %v", err)
		}
		return chorale.Barrier(ctx, c)
	})
}

func TestSubsetOrdersRanksAsGiven(t *testing.T) {
	onRanks(t, 5, func(ctx context.Context, c *chorale.Comm) error {
		sub, err := c.Subset(ctx, []int{4, 0, 2})
		if err != nil {
			return err
		}
		if c.Rank()%2 == 1 {
			if sub != nil {
				return errors.New("a rank outside got a communicator")
			}
			return nil
		}
		if want := map[int]int{4: 0, 0: 1, 2: 2}[c.Rank()]; sub.Rank() != want || sub.Size() != 3 {
			return fmt.Errorf("rank %d is %d of %d, want %d of 3", c.Rank(), sub.Rank(), sub.Size(), want)
		}
		return chorale.Barrier(ctx, sub)
	})
}

func TestGridHasRowsColumnsAndNeighbors(t *testing.T) {
	onEachTransport(t, 13, func(ctx context.Context, c *chorale.Comm) error {
		g, err := c.Grid(ctx, []int{3, 4}, []bool{true, false})
		if err != nil {
			return err
		}
		if c.Rank() == 12 {
			if g != nil {
				return errors.New("rank 12 is on a grid of 12")
			}
			return nil
		}
		at := g.Coordinates(g.Rank())
		if at[0] != c.Rank()/4 || at[1] != c.Rank()%4 {
			return fmt.Errorf("rank %d has coordinates %v", c.Rank(), at)
		}
		above, ok := g.Neighbor(0, -1)
		if want := (c.Rank() + 8) % 12; !ok || above != want {
			return fmt.Errorf("above rank %d is %d, %v: want %d, for columns are rings", c.Rank(), above, ok, want)
		}
		right, ok := g.Neighbor(1, 1)
		if edge := at[1] == 3; ok == edge || ok && right != c.Rank()+1 {
			return fmt.Errorf("right of rank %d is %d, %v", c.Rank(), right, ok)
		}
		row, err := g.Line(ctx, 1)
		if err != nil {
			return err
		}
		column, err := g.Line(ctx, 0)
		if err != nil {
			return err
		}
		inRow, inColumn := []int{c.Rank()}, []int{c.Rank()}
		if err := chorale.AllReduce(ctx, row, inRow, inRow, chorale.Sum); err != nil {
			return err
		}
		if err := chorale.AllReduce(ctx, column, inColumn, inColumn, chorale.Sum); err != nil {
			return err
		}
		return errors.Join(
			same(c, "row", inRow, []int{16*at[0] + 6}),
			same(c, "column", inColumn, []int{12 + 3*at[1]}),
		)
	})
}

func TestGridThatDoesNotFitIsAnArgumentError(t *testing.T) {
	onRanks(t, 3, func(ctx context.Context, c *chorale.Comm) error {
		for _, dims := range [][]int{{2, 2}, {0}, {-1, 3}} {
			if _, err := c.Grid(ctx, dims, nil); !errors.Is(err, chorale.ErrArgument) {
				return fmt.Errorf("dims %v: got %v", dims, err)
			}
		}
		return chorale.Barrier(ctx, c)
	})
}

// One rank of each half waits for long, in another call than the other half: they have nothing
// to do with each other.
func TestCommunicatorsOfOneSplitMayWaitInDifferentCalls(t *testing.T) {
	onEachTransport(t, 4, func(ctx context.Context, c *chorale.Comm) error {
		half, err := c.Split(ctx, c.Rank()%2, 0)
		if err != nil {
			return err
		}
		if half.Rank() == 0 {
			time.Sleep(200 * time.Millisecond)
		}
		if c.Rank()%2 == 0 {
			return sumOf(ctx, half, 1, 2)
		}
		return chorale.AllGather(ctx, half, make([]int, 2), []int{1})
	})
}
