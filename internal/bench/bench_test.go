package bench

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/chorale-go/chorale"
	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/sched"
)

// each runs f on p ranks, each with a Bench that takes next to no time.
func each(t *testing.T, p int, f func(ctx context.Context, b *Bench) error) error {
	t.Helper()
	return chorale.Run(t.Context(), p, func(ctx context.Context, c *chorale.Comm) error {
		return f(ctx, &Bench{Comm: c, Transport: "inproc", Time: 1, Verify: true})
	})
}

func TestEveryCollectiveOfAnySizeIsMeasuredAndVerified(t *testing.T) {
	for _, p := range []int{1, 3, 8} {
		err := each(t, p, func(ctx context.Context, b *Bench) error {
			for _, c := range sched.Collectives() {
				for _, bytes := range []int{0, 8, 1004} {
					if c == sched.Barrier && bytes > 0 {
						continue
					}
					row, err := b.Measure(ctx, Cell{Collective: c, Root: EachRoot, Bytes: bytes})
					if err != nil {
						return err
					}
					if row.Collective != c.String() || row.Algorithm == "" || row.Ranks != p || row.Bytes != bytes || !row.Verified || row.Transport != "inproc" {
						t.Errorf("%v of %d bytes on %d ranks: the row is %+v", c, bytes, p, row)
					}
					if row.Iterations < round || row.Min <= 0 || row.Min > row.Median || row.Median > row.P99 || row.Mean < row.Min || row.Mean > row.P99 {
						t.Errorf("%v of %d bytes on %d ranks: the times are %+v", c, bytes, p, row)
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Errorf("%d ranks: %v", p, err)
		}
		if testing.Short() && p == 3 {
			break
		}
	}
}

// verify checks one call of a cell.
func verify(ctx context.Context, b *Bench, cell Cell) error {
	if cell.Collective.Combines() {
		return newWork[float32](b.Comm, cell, &b.memory).verify(ctx)
	}
	return newWork[byte](b.Comm, cell, &b.memory).verify(ctx)
}

func TestWhatEveryAlgorithmPromisesIsWhatVerifyWants(t *testing.T) {
	for _, p := range []int{2, 7, 8} {
		err := each(t, p, func(ctx context.Context, b *Bench) error {
			for _, a := range algo.Catalog() {
				if a.Restrictions.Allow(p) != nil {
					continue
				}
				for _, root := range []int{0, p - 1} {
					if err := verify(ctx, b, Cell{Collective: a.Collective, Algorithm: a.Name, Root: root, Bytes: 1204}); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Errorf("%d ranks: %v", p, err)
		}
	}
}

// What a call leaves behind is right in all elements, or found wrong.
func TestOneWrongElementIsFound(t *testing.T) {
	for _, c := range sched.Collectives() {
		if c == sched.Barrier {
			continue
		}
		for _, wrong := range []int{0, 299} {
			err := each(t, 3, func(ctx context.Context, b *Bench) error {
				cell := Cell{Collective: c, Bytes: 1200}
				if c.Combines() {
					return spoil[float32](ctx, b, cell, wrong)
				}
				return spoil[byte](ctx, b, cell, wrong)
			})
			if err == nil || !strings.Contains(err.Error(), "want") {
				t.Errorf("%v with a wrong element %d: the error is %v", c, wrong, err)
			}
		}
	}
}

// spoil verifies a call after which one element of the root is wrong.
func spoil[T element](ctx context.Context, b *Bench, cell Cell, wrong int) error {
	w := newWork[T](b.Comm, cell, &b.memory)
	right := w.call
	w.call = func(ctx context.Context, options []chorale.Option) error {
		err := right(ctx, options)
		if b.Comm.Rank() == 0 {
			w.out[wrong]++
		}
		return err
	}
	return w.verify(ctx)
}

func TestASumTakesWholeElements(t *testing.T) {
	err := each(t, 1, func(ctx context.Context, b *Bench) error {
		_, err := b.Measure(ctx, Cell{Collective: sched.AllReduce, Bytes: 6})
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "want a multiple of 4") {
		t.Errorf("6 bytes of float32: %v", err)
	}
}

func TestMeasuringEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	err := chorale.Run(ctx, 2, func(ctx context.Context, c *chorale.Comm) error {
		b := Bench{Comm: c, Time: time.Hour}
		time.AfterFunc(time.Millisecond, cancel)
		_, err := b.Measure(ctx, Cell{Collective: sched.Barrier})
		return err
	})
	if err == nil {
		t.Error("it went on")
	}
}

func TestTheSamplesAreSummarized(t *testing.T) {
	samples := make([]float64, 200)
	for i := range samples {
		samples[(i*7)%200] = float64(i + 1)
	}
	least, median, p99, mean := summarize(samples)
	if least != 1 || median != 100.5 || p99 != 198 || mean < 100.49 || mean > 100.51 {
		t.Errorf("of 1…200: least %v, median %v, p99 %v, mean %v", least, median, p99, mean)
	}
	if least, median, p99, mean := summarize([]float64{3}); least != 3 || median != 3 || p99 != 3 || mean != 3 {
		t.Errorf("of 3: least %v, median %v, p99 %v, mean %v", least, median, p99, mean)
	}
}

func TestAMedianIsStableWhenManySamplesLieClose(t *testing.T) {
	alike, apart := make([]float64, 40), make([]float64, 40)
	for i := range alike {
		alike[i], apart[i] = 100, 100
		if i%5 == 0 {
			alike[i] = 1e6 // it takes more than a few to move a median
		}
		if i%2 == 0 {
			apart[i] = 110
		}
	}
	if !stable(alike) {
		t.Error("a few far ones unsettle it")
	}
	if stable(apart) || stable(alike[:leastSamples-1]) {
		t.Error("it is stable too early")
	}
}

func TestLimitsAreMeasuredAndCompared(t *testing.T) {
	l := MeasureLimits(t.Context(), []int{4096, 0, 8, 8})
	if len(l.Copy) != 2 || l.Copy[0].Bytes != 8 || l.Copy[1].Bytes != 4096 || l.Copy[1].Time <= 0 || l.Loopback <= 0 {
		t.Errorf("the limits are %+v", l)
	}
	row := Row{Transport: "tcp", Bytes: 4096, Median: 3 * l.Copy[1].Time}
	row.Compare(l)
	if row.ToCopy < 2.99 || row.ToCopy > 3.01 || row.Bandwidth != 4096/row.Median || row.ToExchange != row.Median/l.Loopback {
		t.Errorf("the row is %+v", row)
	}
}
