package chorale_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/chorale-go/chorale"
)

func TestManyNonblockingCallsAtATime(t *testing.T) {
	const calls = 100
	for _, p := range []int{1, 2, 5} {
		onEachTransport(t, p, func(ctx context.Context, c *chorale.Comm) error {
			results := make([][]int64, calls)
			requests := make([]*chorale.Request, calls)
			for i := range calls {
				results[i] = vector(c.Rank(), i)
				requests[i] = chorale.Start(ctx, c, func(ctx context.Context, c *chorale.Comm) error {
					return chorale.AllReduce(ctx, c, results[i], results[i], chorale.Sum)
				})
				if i%10 == 0 { // blocking calls continue in between
					if err := chorale.Barrier(ctx, c); err != nil {
						return err
					}
				}
			}
			for i := calls - 1; i >= 0; i-- {
				if err := requests[i].Wait(); err != nil {
					return err
				}
				if err := same(c, fmt.Sprint("call ", i), results[i], total(p, i)); err != nil {
					return err
				}
				if done, err := requests[i].Test(); !done || err != nil {
					return fmt.Errorf("after Wait, Test says %v, %v", done, err)
				}
				<-requests[i].Done()
			}
			return nil
		})
	}
}

func TestPreparedCallIsStartedManyTimes(t *testing.T) {
	onEachTransport(t, 3, func(ctx context.Context, c *chorale.Comm) error {
		v, sum := make([]int64, 4), make([]int64, 4)
		p, err := chorale.Prepare(c, func(ctx context.Context, c *chorale.Comm) error {
			return chorale.AllReduce(ctx, c, sum, v, chorale.Sum)
		})
		if err != nil {
			return err
		}
		defer p.Free()
		for i := range 20 {
			for k := range v {
				v[k] = int64(i * (c.Rank() + 1))
			}
			p.Start(ctx)
			if err := p.Wait(); err != nil {
				return err
			}
			if sum[3] != int64(6*i) {
				return fmt.Errorf("start %d: got %d, want %d", i, sum[3], 6*i)
			}
		}
		return nil
	})
}

func TestEveryCollectiveHasANonblockingForm(t *testing.T) {
	const p = 3
	counts := []int{2, 2, 2}
	onEachTransport(t, p, func(ctx context.Context, c *chorale.Comm) error {
		one := chorale.Op[int64]{Combine: func(a, b int64) int64 { return a + b }, Commutative: true}
		src, whole := vector(c.Rank(), 2), vector(c.Rank(), 6)
		part := func() []int64 { return make([]int64, 2) }
		all := func() []int64 { return make([]int64, 6) }
		sum := part()
		requests := []*chorale.Request{
			chorale.StartAllReduce(ctx, c, sum, src, chorale.Sum),
			chorale.StartBarrier(ctx, c),
			chorale.StartBcast(ctx, c, part(), 1),
			chorale.StartReduce(ctx, c, part(), src, chorale.Sum, 0),
			chorale.StartReduceFunc(ctx, c, part(), src, one, 0),
			chorale.StartAllReduceFunc(ctx, c, part(), src, one),
			chorale.StartScatter(ctx, c, part(), whole, 2),
			chorale.StartScatterV(ctx, c, part(), whole, counts, 2),
			chorale.StartGather(ctx, c, all(), src, 2),
			chorale.StartGatherV(ctx, c, all(), src, counts, 2),
			chorale.StartAllGather(ctx, c, all(), src),
			chorale.StartAllGatherV(ctx, c, all(), src, counts),
			chorale.StartReduceScatter(ctx, c, part(), whole, chorale.Sum),
			chorale.StartReduceScatterFunc(ctx, c, part(), whole, one),
			chorale.StartReduceScatterV(ctx, c, part(), whole, counts, chorale.Sum),
			chorale.StartReduceScatterVFunc(ctx, c, part(), whole, counts, one),
			chorale.StartAllToAll(ctx, c, all(), whole),
			chorale.StartAllToAllV(ctx, c, all(), whole, counts, counts),
			chorale.StartScan(ctx, c, part(), src, chorale.Sum),
			chorale.StartScanFunc(ctx, c, part(), src, one),
			chorale.StartExScan(ctx, c, part(), src, chorale.Sum),
			chorale.StartExScanFunc(ctx, c, part(), src, one),
			chorale.StartShift(ctx, c, part(), src, 1),
		}
		if err := chorale.WaitAll(requests...); err != nil {
			return err
		}
		return same(c, "sum", sum, total(p, 2))
	})
}

func TestFreedPreparedCallsAreReused(t *testing.T) {
	onEachTransport(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		sum := []int64{1}
		for range 5000 { // more than a communicator has at a time
			p, err := chorale.Prepare(c, func(ctx context.Context, c *chorale.Comm) error {
				return chorale.AllReduce(ctx, c, sum, sum, chorale.Max)
			})
			if err != nil {
				return err
			}
			p.Start(ctx)
			if err := p.Wait(); err != nil {
				return err
			}
			p.Free()
			p.Free()
			p.Start(ctx)
			if err := p.Wait(); !errors.Is(err, chorale.ErrClosed) {
				return fmt.Errorf("a freed call: got %v", err)
			}
		}
		return nil
	})
}

func TestNonblockingCallReturnsItsErrorFromWait(t *testing.T) {
	onRanks(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		r := chorale.Start(ctx, c, func(ctx context.Context, c *chorale.Comm) error {
			return chorale.Bcast(ctx, c, []int{1}, 7)
		})
		if err := chorale.WaitAll(r); !errors.Is(err, chorale.ErrArgument) {
			return fmt.Errorf("got %v", err)
		}
		return nil
	})
}

// A call made from an operation finds the communicator busy.
func TestCommunicatorInACallIsBusy(t *testing.T) {
	onRanks(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		var inside error
		reentrant := chorale.Op[int]{Combine: func(a, b int) int {
			inside = chorale.Barrier(ctx, c)
			return a + b
		}}
		sum := make([]int, 1)
		if err := chorale.AllReduceFunc(ctx, c, sum, []int{1}, reentrant); err != nil {
			return err
		}
		if !errors.Is(inside, chorale.ErrBusy) {
			return fmt.Errorf("got %v, want ErrBusy", inside)
		}
		return nil
	})
}
