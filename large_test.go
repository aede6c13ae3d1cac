package chorale_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/chorale-go/chorale"
)

func sumOfRanks(ctx context.Context, c *chorale.Comm) error {
	sum := []int{c.Rank()}
	if err := chorale.AllReduce(ctx, c, sum, sum, chorale.Sum, chorale.WithAlgorithm("recursive-doubling")); err != nil {
		return err
	}
	if want := c.Size() * (c.Size() - 1) / 2; sum[0] != want {
		return fmt.Errorf("sum %d, want %d", sum[0], want)
	}
	return nil
}

func TestAllReduceOnTenThousandRanks(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute under the race detector: two thousand ranks do")
	}
	onRanks(t, 10000, sumOfRanks)
}

// Every rank of a large job talks to a few others only, unless it must.
func TestCollectivesOnTwoThousandRanks(t *testing.T) {
	onRanks(t, 2000, func(ctx context.Context, c *chorale.Comm) error {
		all := make([]int32, c.Size())
		if err := chorale.AllGather(ctx, c, all, []int32{int32(c.Rank())}); err != nil {
			return err
		}
		for rank, x := range all {
			if int(x) != rank {
				return fmt.Errorf("part %d holds %d", rank, x)
			}
		}
		sub, err := c.Split(ctx, c.Rank()%2, 0)
		if err != nil {
			return err
		}
		return chorale.Barrier(ctx, sub)
	})
}
