package chorale_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/chorale-go/chorale"
)

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

func TestMinAndMaxOfNaNAreNaN(t *testing.T) {
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

func TestMinLocAndMaxLocReturnTheFirstNaN(t *testing.T) {
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

func TestElementsMayBeStructsAndArrays(t *testing.T) {
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
