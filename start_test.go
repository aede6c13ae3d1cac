package chorale_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/chorale-go/chorale"
)

func TestManyCallsAreUnderWayAtOnceAndEndInAnyOrder(t *testing.T) {
	const calls = 100
	for _, p := range []int{1, 2, 5} {
		onRanks(t, p, func(ctx context.Context, c *chorale.Comm) error {
			results := make([][]int64, calls)
			requests := make([]*chorale.Request, calls)
			for i := range calls {
				results[i] = vector(c.Rank(), i)
				requests[i] = chorale.Start(ctx, c, func(ctx context.Context, c *chorale.Comm) error {
					return chorale.AllReduce(ctx, c, results[i], results[i], chorale.Sum)
				})
				if i%10 == 0 { // blocking calls go on in between
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

func TestAPreparedCallIsStartedManyTimes(t *testing.T) {
	onRanks(t, 3, func(ctx context.Context, c *chorale.Comm) error {
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

func TestAStartedCallThatFailsSaysSo(t *testing.T) {
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

// An operation that calls its own communicator finds it busy.
func TestACommunicatorDoesOneCallAtATime(t *testing.T) {
	onRanks(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		var inside error
		nosy := chorale.Op[int]{Combine: func(a, b int) int {
			inside = chorale.Barrier(ctx, c)
			return a + b
		}}
		sum := make([]int, 1)
		if err := chorale.AllReduceFunc(ctx, c, sum, []int{1}, nosy); err != nil {
			return err
		}
		if !errors.Is(inside, chorale.ErrBusy) {
			return fmt.Errorf("got %v, want ErrBusy", inside)
		}
		return nil
	})
}
