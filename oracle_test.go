package chorale_test

import (
	"context"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/chorale-go/chorale"
	"github.com/chorale-go/chorale/internal/oracle"
)

// callsPerJob is how many calls each drawn job makes, one after another. With
// rapid's 100 jobs that is 10,000 calls; -rapid.checks=N makes it more.
const callsPerJob = 100

// The test draws jobs at random, and in each callsPerJob calls. The result of every
// rank must equal, bit for bit, a replay of the schedule in its own order. Where
// arithmetic is exact, it must also equal the definition of the collective.
func TestRandomCallsMatchTheOracle(t *testing.T) {
	calls := callsPerJob
	if testing.Short() {
		calls /= 10
	}
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 33).Draw(t, "p")
		outside := rapid.SampledFrom([]int{0, 0, 2}).Draw(t, "ranks outside")
		name := rapid.SampledFrom(append([]string{"inproc"}, transports...)).Draw(t, "transport")
		pick := func(n int, what string) int { return rapid.IntRange(0, n-1).Draw(t, what) }
		drawn := make([]oracle.Call, calls)
		for i := range drawn {
			drawn[i] = oracle.Draw(pick, size)
		}
		onTransport(t, name, size+outside, func(ctx context.Context, c *chorale.Comm) error {
			if outside > 0 {
				ranks := make([]int, size) // the first ones, in reverse order
				for i := range ranks {
					ranks[i] = size - 1 - i
				}
				var err error
				if c, err = c.Subset(ctx, ranks); c == nil || err != nil {
					return err
				}
			}
			for _, call := range drawn {
				if err := call.Run(ctx, c); err != nil {
					return fmt.Errorf("%v: %w", call, err)
				}
			}
			return nil
		})
		for _, call := range drawn {
			for rank := range size {
				if err := call.Verify(rank); err != nil {
					t.Fatalf("%v over %s: %v", call, name, err)
				}
			}
		}
	})
}
