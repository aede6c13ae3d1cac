package chorale_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chorale-go/chorale"
	"github.com/chorale-go/chorale/sched"
)

// A matrix is a 2×2 matrix. Its product does not commute.
type matrix [2][2]int64

func multiply(a, b matrix) (c matrix) {
	for i := range 2 {
		for j := range 2 {
			c[i][j] = a[i][0]*b[0][j] + a[i][1]*b[1][j]
		}
	}
	return c
}

func TestMatrixProductsKeepRankOrder(t *testing.T) {
	mul := chorale.Op[matrix]{Combine: multiply}
	of := func(rank int) matrix { return matrix{{1, int64(rank)}, {int64(rank % 3), 1}} }
	for _, p := range sizes() {
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
				t.Errorf("got %v, want ErrArgument, out of rank order", err)
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
		t.Run(fmt.Sprintf("no algorithm named/p=%d", p), func(t *testing.T) {
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

// A text is a short string. Concatenation does not commute.
type text [20]byte

func concatenate(a, b text) text {
	end := func(t text) int { return len(strings.TrimRight(string(t[:]), "\x00")) }
	copy(a[end(a):], b[:end(b)])
	return a
}

func TestConcatenationsKeepRankOrder(t *testing.T) {
	op := chorale.Op[text]{Combine: concatenate}
	of := func(lo, hi int) (t text) { copy(t[:], "abcdefghijklmnopqrstuvwxyz"[lo:hi]); return t }
	for _, p := range sizes() {
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
