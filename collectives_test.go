package chorale_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chorale-go/chorale"
	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/sched"
)

// sizes are numbers of ranks, the awkward ones first.
var sizes = []int{1, 2, 3, 5, 7, 8, 12, 16, 17}

// counts are numbers of elements to try on p ranks.
func counts(p int) []int { return []int{0, 1, p - 1, p, p + 1, 1000} }

// onRanks runs f on p goroutine ranks and fails the test with what they return.
func onRanks(t *testing.T, p int, f chorale.Func) {
	t.Helper()
	if err := chorale.Run(t.Context(), p, f); err != nil {
		t.Error(err)
	}
}

// eachAlgorithm runs f once per algorithm of a collective that takes p ranks.
func eachAlgorithm(t *testing.T, c sched.Collective, p int, f func(t *testing.T, algorithm chorale.Option, commutative bool)) {
	for _, a := range algo.For(c) {
		if a.Restrictions.Allow(p) != nil {
			continue
		}
		t.Run(fmt.Sprintf("%s/p=%d", a.Name, p), func(t *testing.T) {
			f(t, chorale.WithAlgorithm(a.Name), a.Restrictions.Commutative)
		})
	}
}

// same reports the first difference between what a rank has and what it should.
func same[T comparable](c *chorale.Comm, what string, got, want []T) error {
	if !slices.Equal(got, want) {
		return fmt.Errorf("rank %d: %s: got %v, want %v", c.Rank(), what, got, want)
	}
	return nil
}

// vector is n numbers that tell whose they are.
func vector(rank, n int) []int64 {
	v := make([]int64, n)
	for i := range v {
		v[i] = int64(1000*rank + i)
	}
	return v
}

func total(p, n int) []int64 {
	v := make([]int64, n)
	for rank := range p {
		for i, x := range vector(rank, n) {
			v[i] += x
		}
	}
	return v
}

func TestBcastGivesEveryRankWhatTheRootHas(t *testing.T) {
	for _, p := range sizes {
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
	for _, p := range sizes {
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
	for _, p := range sizes {
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
	for _, p := range sizes {
		whole := func(n int) []int64 { return vector(7, p*n) }
		part := func(rank, n int) []int64 { return whole(n)[rank*n : (rank+1)*n] }
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
						src := slices.Clone(part(c.Rank(), n))
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
	for _, p := range sizes {
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
	for _, p := range sizes {
		eachAlgorithm(t, sched.ReduceScatter, p, func(t *testing.T, algorithm chorale.Option, _ bool) {
			onRanks(t, p, func(ctx context.Context, c *chorale.Comm) error {
				for _, n := range counts(p) {
					src, dst := vector(c.Rank(), p*n), make([]int64, n)
					want := total(p, p*n)[c.Rank()*n : (c.Rank()+1)*n]
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

func TestNobodyLeavesABarrierBeforeEverybodyHasCome(t *testing.T) {
	for _, p := range sizes {
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

// matrix is a 2×2 matrix. Its product does not commute.
type matrix [2][2]int64

func multiply(a, b matrix) (c matrix) {
	for i := range 2 {
		for j := range 2 {
			c[i][j] = a[i][0]*b[0][j] + a[i][1]*b[1][j]
		}
	}
	return c
}

func TestOperationsThatDoNotCommuteKeepRankOrder(t *testing.T) {
	mul := chorale.Op[matrix]{Combine: multiply}
	of := func(rank int) matrix { return matrix{{1, int64(rank)}, {int64(rank % 3), 1}} }
	for _, p := range sizes {
		want := of(0)
		for rank := 1; rank < p; rank++ {
			want = multiply(want, of(rank))
		}
		wants := []matrix{want, want, want}
		test := func(t *testing.T, commutative bool, calls func(ctx context.Context, c *chorale.Comm, src []matrix) error) {
			err := chorale.Run(t.Context(), p, func(ctx context.Context, c *chorale.Comm) error {
				return calls(ctx, c, []matrix{of(c.Rank()), of(c.Rank()), of(c.Rank())})
			})
			switch {
			case !commutative && err != nil:
				t.Error(err)
			case commutative && (!errors.Is(err, chorale.ErrArgument) || !strings.Contains(err.Error(), "out of rank order")):
				t.Errorf("got %v, want a refusal", err)
			}
		}
		eachAlgorithm(t, sched.AllReduce, p, func(t *testing.T, algorithm chorale.Option, commutative bool) {
			test(t, commutative, func(ctx context.Context, c *chorale.Comm, src []matrix) error {
				dst := make([]matrix, 3)
				if err := chorale.AllReduceFunc(ctx, c, dst, src, mul, algorithm); err != nil {
					return err
				}
				return same(c, "dst", dst, wants)
			})
		})
		eachAlgorithm(t, sched.Reduce, p, func(t *testing.T, algorithm chorale.Option, commutative bool) {
			test(t, commutative, func(ctx context.Context, c *chorale.Comm, src []matrix) error {
				for root := range p {
					dst := make([]matrix, 3)
					if err := chorale.ReduceFunc(ctx, c, dst, src, mul, root, algorithm); err != nil {
						return err
					}
					if c.Rank() == root {
						if err := same(c, "dst", dst, wants); err != nil {
							return err
						}
					}
				}
				return nil
			})
		})
		eachAlgorithm(t, sched.ReduceScatter, p, func(t *testing.T, algorithm chorale.Option, commutative bool) {
			test(t, commutative, func(ctx context.Context, c *chorale.Comm, _ []matrix) error {
				src, dst := slices.Repeat([]matrix{of(c.Rank())}, p), make([]matrix, 1)
				if err := chorale.ReduceScatterFunc(ctx, c, dst, src, mul, algorithm); err != nil {
					return err
				}
				return same(c, "dst", dst, wants[:1])
			})
		})
		t.Run(fmt.Sprintf("ours to choose/p=%d", p), func(t *testing.T) {
			test(t, false, func(ctx context.Context, c *chorale.Comm, src []matrix) error {
				part := make([]matrix, 1)
				return errors.Join(
					chorale.ReduceScatterFunc(ctx, c, part, slices.Repeat(src[:1], p), mul),
					same(c, "part", part, wants[:1]),
					chorale.AllReduceFunc(ctx, c, src, src, mul),
					same(c, "in place", src, wants),
				)
			})
		})
	}
}

// text is a short string. Joining two does not commute.
type text [20]byte

func joined(a, b text) text {
	end := func(t text) int { return len(strings.TrimRight(string(t[:]), "\x00")) }
	copy(a[end(a):], b[:end(b)])
	return a
}

func TestTextsAreJoinedInRankOrder(t *testing.T) {
	op := chorale.Op[text]{Combine: joined}
	of := func(lo, hi int) (t text) { copy(t[:], "abcdefghijklmnopqrstuvwxyz"[lo:hi]); return t }
	for _, p := range sizes {
		for _, c := range []sched.Collective{sched.AllReduce, sched.Reduce, sched.ReduceScatter, sched.Scan, sched.ExScan} {
			eachAlgorithm(t, c, p, func(t *testing.T, algorithm chorale.Option, commutative bool) {
				if commutative {
					return
				}
				onRanks(t, p, func(ctx context.Context, comm *chorale.Comm) (err error) {
					r := comm.Rank()
					src := slices.Repeat([]text{of(r, r+1)}, p)
					dst, n, want := make([]text, p), p, of(0, p)
					switch c {
					case sched.AllReduce:
						err = chorale.AllReduceFunc(ctx, comm, dst, src, op, algorithm)
					case sched.Reduce:
						err = chorale.ReduceFunc(ctx, comm, dst, src, op, p/2, algorithm)
						if r != p/2 {
							n = 0
						}
					case sched.ReduceScatter:
						n = 1
						err = chorale.ReduceScatterFunc(ctx, comm, dst[:1], src, op, algorithm)
					case sched.Scan:
						want = of(0, r+1)
						err = chorale.ScanFunc(ctx, comm, dst, src, op, algorithm)
					case sched.ExScan:
						want = of(0, r)
						err = chorale.ExScanFunc(ctx, comm, dst, src, op, algorithm)
					}
					if err != nil {
						return err
					}
					return same(comm, "dst", dst[:n], slices.Repeat([]text{want}, n))
				})
			})
		}
	}
}

func TestEveryRankOfAnAllreduceHoldsTheSameBits(t *testing.T) {
	for _, p := range sizes {
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

func TestBuiltInOperationsOfEveryType(t *testing.T) {
	onRanks(t, 5, func(ctx context.Context, c *chorale.Comm) error {
		r := c.Rank()
		return errors.Join(
			reduced(ctx, c, chorale.Sum, []int8{int8(r), 100}, []int8{10, -12}), // wraps around
			reduced(ctx, c, chorale.Prod, []uint64{uint64(r + 1)}, []uint64{120}),
			reduced(ctx, c, chorale.Min, []float32{float32(r), float32(-r)}, []float32{0, -4}),
			reduced(ctx, c, chorale.Max, []uint16{uint16(r), 9}, []uint16{4, 9}),
			reduced(ctx, c, chorale.And, []uint8{0xff << r}, []uint8{0xf0}),
			reduced(ctx, c, chorale.Or, []int32{1 << r}, []int32{31}),
			reduced(ctx, c, chorale.Xor, []int{r}, []int{0 ^ 1 ^ 2 ^ 3 ^ 4}),
			reduced(ctx, c, chorale.Sum, []complex128{complex(float64(r), 1)}, []complex128{10 + 5i}),
			reduced(ctx, c, chorale.Prod, []complex64{1i}, []complex64{1i}),
			reduced(ctx, c, chorale.Sum, []celsius{celsius(r)}, []celsius{10}),
			reduced(ctx, c, chorale.LogicalAnd, []bool{r > 0, true}, []bool{false, true}),
			reduced(ctx, c, chorale.LogicalOr, []bool{r == 3, false}, []bool{true, false}),
			reduced(ctx, c, chorale.LogicalXor, []bool{r < 3, r < 2}, []bool{true, false}),
			reduced(ctx, c, chorale.MinLoc, []chorale.Loc[float64]{{float64((r + 3) % 5), r}}, []chorale.Loc[float64]{{0, 2}}),
			reduced(ctx, c, chorale.MaxLoc, []chorale.Loc[int8]{{int8(r / 2), r}, {7, 9 - r}}, []chorale.Loc[int8]{{2, 4}, {7, 5}}),
		)
	})
}

type celsius float64

func reduced[T comparable](ctx context.Context, c *chorale.Comm, op func() chorale.Op[T], src, want []T) error {
	dst := make([]T, len(src))
	if err := chorale.AllReduce(ctx, c, dst, src, op); err != nil {
		return err
	}
	return same(c, fmt.Sprintf("%T", src), dst, want)
}

func TestNaNWinsEveryMinAndMax(t *testing.T) {
	onRanks(t, 3, func(ctx context.Context, c *chorale.Comm) error {
		v := []float64{float64(c.Rank()), float64(c.Rank())}
		v[0] = []float64{1, math.NaN(), 3}[c.Rank()]
		dst := make([]float64, 2)
		for _, op := range []func() chorale.Op[float64]{chorale.Min[float64], chorale.Max[float64]} {
			if err := chorale.AllReduce(ctx, c, dst, v, op); err != nil {
				return err
			}
			if !math.IsNaN(dst[0]) || math.IsNaN(dst[1]) {
				return fmt.Errorf("got %v, want NaN and a number", dst)
			}
		}
		return nil
	})
}

func TestNaNWinsWithTheLeastIndex(t *testing.T) {
	onRanks(t, 5, func(ctx context.Context, c *chorale.Comm) error {
		v := []chorale.Loc[float64]{{[]float64{1, math.NaN(), 0, math.NaN(), 9}[c.Rank()], c.Rank()}}
		for _, op := range []func() chorale.Op[chorale.Loc[float64]]{chorale.MinLoc[float64], chorale.MaxLoc[float64]} {
			dst := make([]chorale.Loc[float64], 1)
			if err := chorale.AllReduce(ctx, c, dst, v, op); err != nil {
				return err
			}
			if !math.IsNaN(dst[0].Value) || dst[0].Index != 1 {
				return fmt.Errorf("got %v, want NaN of rank 1", dst)
			}
		}
		return nil
	})
}

func TestStructsAndArraysTravel(t *testing.T) {
	type particle struct {
		Position [3]float64
		Charge   int8
		Alive    bool
	}
	want := []particle{{[3]float64{1, 2, 3}, -1, true}, {[3]float64{4, 5, 6}, 2, false}}
	onRanks(t, 3, func(ctx context.Context, c *chorale.Comm) error {
		buf := make([]particle, 2)
		if c.Rank() == 2 {
			copy(buf, want)
		}
		if err := chorale.Bcast(ctx, c, buf, 2); err != nil {
			return err
		}
		return same(c, "buf", buf, want)
	})
}
