package command

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/chorale-go/chorale"
)

// Every rank contributes its number. The tree leaves the sum on rank 0, and the
// butterfly leaves it on all.
//
// CLAIM T1 T2 B1 B2
func TestRealRanksHoldTheSumsOfTheTexts(t *testing.T) {
	for p, want := range map[int]int{1: 0, 2: 1, 5: 10, 6: 15, 7: 21, 8: 28, 16: 120, 20: 190, 32: 496, 35: 595} {
		err := chorale.Run(t.Context(), p, func(ctx context.Context, c *chorale.Comm) error {
			mine := []int{c.Rank()}
			var sum [2]int
			if err := chorale.Reduce(ctx, c, sum[:1], mine, chorale.Sum, 0, chorale.WithAlgorithm("tree")); err != nil {
				return err
			}
			if err := chorale.AllReduce(ctx, c, sum[1:], mine, chorale.Sum, chorale.WithAlgorithm("butterfly")); err != nil {
				return err
			}
			if c.Rank() == 0 && sum[0] != want || sum[1] != want {
				return fmt.Errorf("rank %d: tree %d, butterfly %d, want %d", c.Rank(), sum[0], sum[1], want)
			}
			return nil
		})
		if err != nil {
			t.Errorf("p %d: %v", p, err)
		}
	}
}

// greatest is an operator that is not built in.
func greatest() chorale.Op[int] {
	return chorale.Op[int]{Commutative: true, Combine: func(a, b int) int {
		for b != 0 {
			a, b = b, a%b
		}
		return a
	}}
}

// CLAIM G4 V2
func TestAReductionTakesAnyOperatorWordByWord(t *testing.T) {
	operators := map[string]struct {
		op   func() chorale.Op[int]
		fold func(a, b int) int
	}{
		"sum":              {chorale.Sum[int], func(a, b int) int { return a + b }},
		"product":          {chorale.Prod[int], func(a, b int) int { return a * b }},
		"maximum":          {chorale.Max[int], func(a, b int) int { return max(a, b) }},
		"minimum":          {chorale.Min[int], func(a, b int) int { return min(a, b) }},
		"greatest divisor": {greatest, greatest().Combine},
	}
	const m = 5
	vector := func(rank int) (v []int) {
		for i := range m {
			v = append(v, (rank+2)*(i+1)*6)
		}
		return v
	}
	for name, o := range operators {
		for _, p := range []int{1, 2, 5, 7, 8} {
			want := vector(0)
			for rank := 1; rank < p; rank++ {
				for i, x := range vector(rank) {
					want[i] = o.fold(want[i], x)
				}
			}
			err := chorale.Run(t.Context(), p, func(ctx context.Context, c *chorale.Comm) error {
				for _, root := range []int{0, p - 1} {
					got := make([]int, m)
					if err := chorale.Reduce(ctx, c, got, vector(c.Rank()), o.op, root, chorale.WithAlgorithm("binomial")); err != nil {
						return err
					}
					if c.Rank() == root && !slices.Equal(got, want) {
						return fmt.Errorf("on root %d: %v, want %v", root, got, want)
					}
				}
				for _, by := range []string{"recursive-doubling", "recursive-halving", "halving-exchange"} {
					got := make([]int, m)
					if err := chorale.AllReduce(ctx, c, got, vector(c.Rank()), o.op, chorale.WithAlgorithm(by)); err != nil {
						return err
					}
					if !slices.Equal(got, want) {
						return fmt.Errorf("%s, on rank %d: %v, want %v", by, c.Rank(), got, want)
					}
				}
				return nil
			})
			if err != nil {
				t.Errorf("%s of %d ranks: %v", name, p, err)
			}
		}
	}
}

// CLAIM I5
func TestFewerWordsThanRanksAreStillBroadcast(t *testing.T) {
	for _, p := range []int{2, 5, 8, 16} {
		for words := range p + 2 {
			err := chorale.Run(t.Context(), p, func(ctx context.Context, c *chorale.Comm) error {
				want := make([]int, words)
				for i := range want {
					want[i] = 100 + i
				}
				got := make([]int, words)
				if c.Rank() == p-1 {
					copy(got, want)
				}
				if err := chorale.Bcast(ctx, c, got, p-1, chorale.WithAlgorithm("scatter-allgather")); err != nil {
					return err
				}
				if !slices.Equal(got, want) {
					return fmt.Errorf("rank %d has %v, want %v", c.Rank(), got, want)
				}
				return nil
			})
			if err != nil {
				t.Errorf("%d words among %d ranks: %v", words, p, err)
			}
		}
	}
}
