package chorale_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/chorale-go/chorale"
)

// reduceOnce is a job with one call.
func reduceOnce(ctx context.Context, c *chorale.Comm) error {
	sum := [...]int{c.Rank(), 1}
	if err := chorale.AllReduce(ctx, c, sum[:], sum[:], chorale.Sum); err != nil {
		return err
	}
	if want := [...]int{c.Size() * (c.Size() - 1) / 2, c.Size()}; sum != want {
		return fmt.Errorf("rank %d: got %v, want %v", c.Rank(), sum, want)
	}
	return nil
}

func TestRunKeepsProgramsForLaterJobsOfTheSameShape(t *testing.T) {
	for range 1000 { // the garbage collector may drop them at any time
		adopted := make([]int, 5)
		onRanks(t, len(adopted), func(ctx context.Context, c *chorale.Comm) error {
			adopted[c.Rank()] = c.Held().Calls
			return reduceOnce(ctx, c)
		})
		if t.Failed() {
			return
		}
		if adopted[0] > 0 {
			for rank, n := range adopted {
				if n != 1 {
					t.Errorf("rank %d has the programs of %d calls: want 1", rank, n)
				}
			}
			return
		}
	}
	t.Error("no job had the programs of one before")
}

func TestTheOverrideOfTheSelectionHoldsForTheNextJob(t *testing.T) {
	for range 3 {
		for _, algorithm := range []string{"ring", "recursive-doubling"} {
			t.Setenv("CHORALE_ALGORITHM", algorithm)
			onRanks(t, 4, func(ctx context.Context, c *chorale.Comm) error {
				var stats chorale.Stats
				err := chorale.AllReduce(ctx, c, []int{0}, []int{1}, chorale.Sum, chorale.WithStats(&stats))
				if err == nil && stats.Algorithm != algorithm {
					err = fmt.Errorf("%s was run: want %s", stats.Algorithm, algorithm)
				}
				return err
			})
		}
	}
}

func TestACommunicatorOfAJobThatIsOverIsClosed(t *testing.T) {
	var stale *chorale.Comm
	for range 2 {
		onRanks(t, 2, func(ctx context.Context, c *chorale.Comm) error {
			if c.Rank() == 0 {
				stale = c
			}
			return reduceOnce(ctx, c)
		})
		if err := chorale.Barrier(t.Context(), stale); !errors.Is(err, chorale.ErrClosed) {
			t.Errorf("a collective: %v", err)
		}
		if err := chorale.Send(t.Context(), stale, []int{1}, 1, 7); !errors.Is(err, chorale.ErrClosed) {
			t.Errorf("a message: %v", err)
		}
	}
}
