package chorale_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/chorale-go/chorale"
	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/sched"
)

// shapes returns lists of counts for p ranks, awkward ones and zeros among them.
func shapes(p int) [][]int {
	var all [][]int
	for _, length := range []func(rank int) int{
		func(rank int) int { return rank },
		func(rank int) int { return (rank*7 + 3) % 5 },
		func(rank int) int { return 0 },
		func(rank int) int { return 100 / (rank + 1) },
		func(rank int) int { return 2 },
	} {
		counts := make([]int, p)
		for rank := range counts {
			counts[rank] = length(rank)
		}
		all = append(all, counts)
	}
	return all
}

// cut returns the part of a rank in a vector.
func cut(v []int64, counts []int, rank int) []int64 {
	lo := 0
	for _, n := range counts[:rank] {
		lo += n
	}
	return v[lo : lo+counts[rank]]
}

func sum(counts []int) (total int) {
	for _, n := range counts {
		total += n
	}
	return total
}

// eachUneven runs f on p ranks once per algorithm that takes uneven parts, and
// once with none named.
func eachUneven(t *testing.T, c sched.Collective, p int, f func(ctx context.Context, c *chorale.Comm, counts []int, options ...chorale.Option) error) {
	names := []string{""}
	for _, a := range algo.For(c) {
		if a.Restrictions.Allow(p) == nil && !a.Restrictions.EqualParts {
			names = append(names, a.Name)
		}
	}
	for _, name := range names {
		t.Run(fmt.Sprintf("%v %s/p=%d", c, name, p), func(t *testing.T) {
			onRanks(t, p, func(ctx context.Context, c *chorale.Comm) error {
				for _, counts := range shapes(p) {
					if err := f(ctx, c, counts, chorale.WithAlgorithm(name)); err != nil {
						return fmt.Errorf("counts %v: %w", counts, err)
					}
				}
				return nil
			})
		})
	}
}

func TestPartsOfDifferentLengths(t *testing.T) {
	for _, p := range sizes() {
		eachUneven(t, sched.Scatter, p, func(ctx context.Context, c *chorale.Comm, counts []int, options ...chorale.Option) error {
			whole := vector(7, sum(counts))
			for root := range p {
				var src []int64
				if c.Rank() == root {
					src = whole
				}
				dst := make([]int64, counts[c.Rank()])
				if err := chorale.ScatterV(ctx, c, dst, src, counts, root, options...); err != nil {
					return err
				}
				if err := same(c, "scatter", dst, cut(whole, counts, c.Rank())); err != nil {
					return err
				}
			}
			return nil
		})
		eachUneven(t, sched.Gather, p, func(ctx context.Context, c *chorale.Comm, counts []int, options ...chorale.Option) error {
			whole := vector(7, sum(counts))
			for root := range p {
				var dst []int64
				if c.Rank() == root {
					dst = make([]int64, len(whole))
				}
				if err := chorale.GatherV(ctx, c, dst, cut(whole, counts, c.Rank()), counts, root, options...); err != nil {
					return err
				}
				if c.Rank() == root {
					if err := same(c, "gather", dst, whole); err != nil {
						return err
					}
				}
			}
			return nil
		})
		eachUneven(t, sched.AllGather, p, func(ctx context.Context, c *chorale.Comm, counts []int, options ...chorale.Option) error {
			whole := vector(7, sum(counts))
			dst := make([]int64, len(whole))
			if err := chorale.AllGatherV(ctx, c, dst, cut(whole, counts, c.Rank()), counts, options...); err != nil {
				return err
			}
			return same(c, "allgather", dst, whole)
		})
		eachUneven(t, sched.ReduceScatter, p, func(ctx context.Context, c *chorale.Comm, counts []int, options ...chorale.Option) error {
			n := sum(counts)
			dst := make([]int64, counts[c.Rank()])
			if err := chorale.ReduceScatterV(ctx, c, dst, vector(c.Rank(), n), counts, chorale.Sum, options...); err != nil {
				return err
			}
			return same(c, "reduce-scatter", dst, cut(total(p, n), counts, c.Rank()))
		})
		eachUneven(t, sched.AllToAll, p, func(ctx context.Context, c *chorale.Comm, counts []int, options ...chorale.Option) error {
			// Rank r has counts[r] + s elements for rank s.
			var src, want []int64
			srcCounts, dstCounts := make([]int, p), make([]int, p)
			message := func(from, to int) []int64 { return vector(100*from+to, counts[from]+to) }
			for other := range p {
				src = append(src, message(c.Rank(), other)...)
				want = append(want, message(other, c.Rank())...)
				srcCounts[other] = counts[c.Rank()] + other
				dstCounts[other] = counts[other] + c.Rank()
			}
			dst := make([]int64, len(want))
			if err := chorale.AllToAllV(ctx, c, dst, src, dstCounts, srcCounts, options...); err != nil {
				return err
			}
			return same(c, "alltoall", dst, want)
		})
	}
}

func TestWrongCountsAreArgumentErrors(t *testing.T) {
	onRanks(t, 3, func(ctx context.Context, c *chorale.Comm) error {
		for _, test := range []struct {
			counts   []int
			src, dst int
			want     string
		}{
			{[]int{1, 2}, 1, 3, "2 counts: want 3, one per rank"},
			{[]int{1, -2, 1}, 1, 0, "count -2 of rank 1: want 0 or more"},
			{[]int{1, 1, 1}, 1, 4, "dst has 4 elements: want 3, the sum of counts"},
			{[]int{1, 1, 1}, 2, 3, fmt.Sprintf("src has 2 elements: want 1, as counts says of rank %d", c.Rank())},
		} {
			err := chorale.AllGatherV(ctx, c, make([]int, test.dst), make([]int, test.src), test.counts)
			if want := fmt.Sprintf("chorale: allgather on rank %d: %s", c.Rank(), test.want); err == nil || err.Error() != want || !errors.Is(err, chorale.ErrArgument) {
				return fmt.Errorf("got  %v\nwant %s", err, want)
			}
		}
		return chorale.Barrier(ctx, c)
	})
}

func TestCountsThatDifferBetweenRanksAreAMismatch(t *testing.T) {
	err := chorale.Run(t.Context(), 2, func(ctx context.Context, c *chorale.Comm) error {
		counts := []int{1 + c.Rank(), 2 - c.Rank()} // 1, 2 on rank 0; 2, 1 on rank 1
		return chorale.AllGatherV(ctx, c, make([]int, 3), make([]int, counts[c.Rank()]), counts)
	})
	if err == nil || !strings.Contains(err.Error(), "counts [1 2]") || !strings.Contains(err.Error(), "counts [2 1]") {
		t.Errorf("got %v", err)
	}
}

func TestAllToAllVInPlaceIsAnArgumentError(t *testing.T) {
	onRanks(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		buf := []int{1, 2, 3, 4}
		send, receive := []int{1, 2}, []int{1, 2}
		if c.Rank() == 1 {
			send, receive = []int{2, 1}, []int{2, 1}
		}
		for _, src := range [][]int{buf[:3], buf[1:]} {
			if err := chorale.AllToAllV(ctx, c, buf[:3], src, receive, send); !errors.Is(err, chorale.ErrArgument) {
				return fmt.Errorf("got %v, want that dst and src overlap", err)
			}
		}
		return same(c, "buf", buf, []int{1, 2, 3, 4})
	})
}
