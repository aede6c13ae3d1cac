package chorale_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/chorale-go/chorale"
	"github.com/chorale-go/chorale/sched"
)

func TestBcastCopiesTheRootsBuffer(t *testing.T) {
	for _, p := range sizes() {
		eachAlgorithm(t, sched.Bcast, p, func(t *testing.T, algorithm chorale.Option, _ bool) {
			onRanks(t, p, func(ctx context.Context, c *chorale.Comm) error {
				for root := range p {
					for _, n := range counts(p) {
						buf := vector(c.Rank(), n)
						if err := chorale.Bcast(ctx, c, buf, root, algorithm); err != nil {
							return err
						}
						if err := same(c, "buf", buf, vector(root, n)); err != nil {
							return err
						}
					}
				}
				return nil
			})
		})
	}
}

func TestReduceLeavesTheSumOnTheRoot(t *testing.T) {
	for _, p := range sizes() {
		eachAlgorithm(t, sched.Reduce, p, func(t *testing.T, algorithm chorale.Option, _ bool) {
			onRanks(t, p, func(ctx context.Context, c *chorale.Comm) error {
				for root := range p {
					for _, n := range counts(p) {
						src := vector(c.Rank(), n)
						var dst []int64
						if c.Rank() == root {
							dst = make([]int64, n)
						}
						if err := chorale.Reduce(ctx, c, dst, src, chorale.Sum, root, algorithm); err != nil {
							return err
						}
						if c.Rank() == root {
							if err := same(c, "dst", dst, total(p, n)); err != nil {
								return err
							}
						}
						if err := same(c, "src", src, vector(c.Rank(), n)); err != nil {
							return err
						}
					}
				}
				return nil
			})
		})
	}
}

func TestAllReduceLeavesTheSumOnEveryRankAlsoInPlace(t *testing.T) {
	for _, p := range sizes() {
		eachAlgorithm(t, sched.AllReduce, p, func(t *testing.T, algorithm chorale.Option, _ bool) {
			onRanks(t, p, func(ctx context.Context, c *chorale.Comm) error {
				for _, n := range counts(p) {
					src, dst := vector(c.Rank(), n), make([]int64, n)
					if err := chorale.AllReduce(ctx, c, dst, src, chorale.Sum, algorithm); err != nil {
						return err
					}
					if err := chorale.AllReduce(ctx, c, src, src, chorale.Sum, algorithm); err != nil {
						return err
					}
					if err := errors.Join(same(c, "dst", dst, total(p, n)), same(c, "in place", src, total(p, n))); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
}

func TestScatterAndGatherMoveOnePartPerRankAlsoInPlace(t *testing.T) {
	for _, p := range sizes() {
		whole := func(n int) []int64 { return vector(7, p*n) }
		part := func(rank, n int) []int64 { return vectorFrom(7, rank*n, n) }
		eachAlgorithm(t, sched.Scatter, p, func(t *testing.T, algorithm chorale.Option, _ bool) {
			onRanks(t, p, func(ctx context.Context, c *chorale.Comm) error {
				for root := range p {
					for _, n := range counts(p) {
						var src []int64
						dst := make([]int64, n)
						if c.Rank() == root {
							src = whole(n)
							if root%2 == 1 {
								dst = src[root*n : (root+1)*n]
							}
						}
						if err := chorale.Scatter(ctx, c, dst, src, root, algorithm); err != nil {
							return err
						}
						if err := same(c, "dst", dst, part(c.Rank(), n)); err != nil {
							return err
						}
					}
				}
				return nil
			})
		})
		eachAlgorithm(t, sched.Gather, p, func(t *testing.T, algorithm chorale.Option, _ bool) {
			onRanks(t, p, func(ctx context.Context, c *chorale.Comm) error {
				for root := range p {
					for _, n := range counts(p) {
						var dst []int64
						src := part(c.Rank(), n)
						if c.Rank() == root {
							dst = make([]int64, p*n)
							if root%2 == 1 {
								own := dst[root*n : (root+1)*n]
								copy(own, src)
								src = own
							}
						}
						if err := chorale.Gather(ctx, c, dst, src, root, algorithm); err != nil {
							return err
						}
						if c.Rank() == root {
							if err := same(c, "dst", dst, whole(n)); err != nil {
								return err
							}
						}
					}
				}
				return nil
			})
		})
	}
}

func TestAllGatherGivesEveryRankEveryPartAlsoInPlace(t *testing.T) {
	for _, p := range sizes() {
		eachAlgorithm(t, sched.AllGather, p, func(t *testing.T, algorithm chorale.Option, _ bool) {
			onRanks(t, p, func(ctx context.Context, c *chorale.Comm) error {
				for _, n := range counts(p) {
					whole := vector(7, p*n)
					mine := whole[c.Rank()*n : (c.Rank()+1)*n]
					dst, inPlace := make([]int64, p*n), make([]int64, p*n)
					own := inPlace[c.Rank()*n : (c.Rank()+1)*n]
					copy(own, mine)
					if err := chorale.AllGather(ctx, c, dst, mine, algorithm); err != nil {
						return err
					}
					if err := chorale.AllGather(ctx, c, inPlace, own, algorithm); err != nil {
						return err
					}
					if err := errors.Join(same(c, "dst", dst, whole), same(c, "in place", inPlace, whole)); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
}

func TestReduceScatterGivesEachRankItsPartOfTheSumAlsoInPlace(t *testing.T) {
	for _, p := range sizes() {
		eachAlgorithm(t, sched.ReduceScatter, p, func(t *testing.T, algorithm chorale.Option, _ bool) {
			onRanks(t, p, func(ctx context.Context, c *chorale.Comm) error {
				for _, n := range counts(p) {
					src, dst := vector(c.Rank(), p*n), make([]int64, n)
					want := totalFrom(p, c.Rank()*n, n)
					if err := chorale.ReduceScatter(ctx, c, dst, src, chorale.Sum, algorithm); err != nil {
						return err
					}
					own := src[c.Rank()*n : (c.Rank()+1)*n]
					if err := chorale.ReduceScatter(ctx, c, own, src, chorale.Sum, algorithm); err != nil {
						return err
					}
					if err := errors.Join(same(c, "dst", dst, want), same(c, "in place", own, want)); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
}

func TestBarrierReturnsAfterAllRanksHaveCalledIt(t *testing.T) {
	for _, p := range sizes() {
		eachAlgorithm(t, sched.Barrier, p, func(t *testing.T, algorithm chorale.Option, _ bool) {
			var mu sync.Mutex
			came := 0
			onRanks(t, p, func(ctx context.Context, c *chorale.Comm) error {
				mu.Lock()
				came++
				mu.Unlock()
				if err := chorale.Barrier(ctx, c, algorithm); err != nil {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				if came != p {
					return fmt.Errorf("rank %d left when %d of %d had come", c.Rank(), came, p)
				}
				return nil
			})
		})
	}
}

func TestEveryRankOfAnAllReduceHasTheSameBits(t *testing.T) {
	for _, p := range sizes() {
		eachAlgorithm(t, sched.AllReduce, p, func(t *testing.T, algorithm chorale.Option, _ bool) {
			results := make([][]float64, p)
			onRanks(t, p, func(ctx context.Context, c *chorale.Comm) error {
				v := make([]float64, 100)
				for i := range v {
					v[i] = math.Sin(float64(100*c.Rank()+i)) * math.Pow(10, float64((c.Rank()*7+i)%17-8))
				}
				results[c.Rank()] = v
				return chorale.AllReduce(ctx, c, v, v, chorale.Sum, algorithm)
			})
			for rank, v := range results {
				for i := range v {
					if math.Float64bits(v[i]) != math.Float64bits(results[0][i]) {
						t.Fatalf("element %d is %v on rank %d, %v on rank 0", i, v[i], rank, results[0][i])
					}
				}
			}
		})
	}
}

func TestScanExScanShiftAndAllToAll(t *testing.T) {
	for _, p := range sizes() {
		eachAlgorithm(t, sched.Scan, p, func(t *testing.T, algorithm chorale.Option, _ bool) {
			onRanks(t, p, func(ctx context.Context, c *chorale.Comm) error {
				for _, n := range counts(p) {
					v := vector(c.Rank(), n)
					if err := chorale.Scan(ctx, c, v, v, chorale.Sum, algorithm); err != nil {
						return err
					}
					if err := same(c, "scan", v, total(c.Rank()+1, n)); err != nil {
						return err
					}
				}
				return nil
			})
		})
		eachAlgorithm(t, sched.ExScan, p, func(t *testing.T, algorithm chorale.Option, _ bool) {
			onRanks(t, p, func(ctx context.Context, c *chorale.Comm) error {
				for _, n := range counts(p) {
					dst := slices.Repeat([]int64{-1}, n)
					want := slices.Clone(dst)
					if c.Rank() > 0 {
						want = total(c.Rank(), n)
					}
					if err := chorale.ExScan(ctx, c, dst, vector(c.Rank(), n), chorale.Sum, algorithm); err != nil {
						return err
					}
					if err := same(c, "exscan", dst, want); err != nil {
						return err
					}
				}
				return nil
			})
		})
		eachAlgorithm(t, sched.Shift, p, func(t *testing.T, algorithm chorale.Option, _ bool) {
			onRanks(t, p, func(ctx context.Context, c *chorale.Comm) error {
				for _, by := range []int{0, 1, -1, p / 2, p - 1, 3*p + 2} {
					for _, n := range counts(p) {
						v := vector(c.Rank(), n)
						if err := chorale.Shift(ctx, c, v, v, by, algorithm); err != nil {
							return err
						}
						from := (((c.Rank() - by) % p) + p) % p
						if err := same(c, fmt.Sprint("shift by ", by), v, vector(from, n)); err != nil {
							return err
						}
					}
				}
				return nil
			})
		})
		eachAlgorithm(t, sched.AllToAll, p, func(t *testing.T, algorithm chorale.Option, _ bool) {
			onRanks(t, p, func(ctx context.Context, c *chorale.Comm) error {
				for _, n := range counts(p) {
					src, want := make([]int64, 0, p*n), make([]int64, 0, p*n)
					for other := range p {
						src = append(src, vector(100*c.Rank()+other, n)...)
						want = append(want, vector(100*other+c.Rank(), n)...)
					}
					dst := make([]int64, p*n)
					if err := chorale.AllToAll(ctx, c, dst, src, algorithm); err != nil {
						return err
					}
					if err := chorale.AllToAll(ctx, c, src, src, algorithm); err != nil {
						return err
					}
					if err := errors.Join(same(c, "dst", dst, want), same(c, "in place", src, want)); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
}
