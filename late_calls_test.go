package chorale_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/chorale-go/chorale"
)

// Rank 1 waits for its calls when it has a message, which rank 0 sends when its own are
// done. So another goroutine of rank 1 has begun them.
func TestCallsThatNobodyWaitsForAreBegun(t *testing.T) {
	onEachTransport(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		prepared, err := chorale.Prepare(c, func(ctx context.Context, c *chorale.Comm) error { return chorale.Barrier(ctx, c) })
		if err != nil {
			return err
		}
		defer prepared.Free()
		for range 3 {
			prepared.Start(ctx)
			sum := []int{1}
			r := chorale.StartAllReduce(ctx, c, sum, sum, chorale.Sum)
			message := []int{0}
			if c.Rank() == 1 {
				if _, err := chorale.Recv(ctx, c, message, 0, 0); err != nil {
					return err
				}
			}
			if err := chorale.WaitAll(r); err != nil {
				return err
			}
			if err := prepared.Wait(); err != nil {
				return err
			}
			if c.Rank() == 0 {
				if err := chorale.Send(ctx, c, message, 1, 0); err != nil {
					return err
				}
			}
			if err := same(c, "sum", sum, []int{2}); err != nil {
				return err
			}
		}
		return nil
	})
}

// Whatever asks for a call, and however many goroutines do, its function is called once.
func TestAStartedFunctionIsCalledOnce(t *testing.T) {
	onRanks(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		for round := range 200 {
			var calls atomic.Int32
			r := chorale.Start(ctx, c, func(ctx context.Context, c *chorale.Comm) error {
				calls.Add(1)
				return chorale.Barrier(ctx, c)
			})
			var wg sync.WaitGroup
			errs := make([]error, 5)
			for i, ask := range []func() error{
				r.Wait,
				func() error { return chorale.WaitAll(r) },
				func() error { <-r.Done(); return nil },
				func() error {
					for {
						if done, err := r.Test(); done {
							return err
						}
					}
				},
				r.Wait,
			} {
				wg.Go(func() { errs[i] = ask() })
			}
			wg.Wait()
			for _, err := range errs {
				if err != nil {
					return err
				}
			}
			if n := calls.Load(); n != 1 {
				return fmt.Errorf("round %d: the function was called %d times", round, n)
			}
		}
		return nil
	})
}

// A call that its goroutine waits for at once is not kept for another one to begin.
func TestCallsThatAreWaitedForAtOnceAreNotKept(t *testing.T) {
	onEachTransport(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		for range 3 {
			sum := []int{1}
			if err := chorale.StartAllReduce(ctx, c, sum, sum, chorale.Sum).Wait(); err != nil {
				return err
			}
			if n := chorale.LateCalls(c); n > 0 {
				return fmt.Errorf("%d calls are kept that are done", n)
			}
		}
		return nil
	})
}
