package bench

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chorale-go/chorale"
	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/sched"
)

// onRanks runs f on p ranks, each with a Bench that takes the fewest samples.
func onRanks(t *testing.T, p int, f func(ctx context.Context, b *Bench) error) error {
	t.Helper()
	return chorale.Run(t.Context(), p, func(ctx context.Context, c *chorale.Comm) error {
		return f(ctx, &Bench{Comm: c, Transport: "inproc", Time: 1, Verify: true})
	})
}

func TestEveryCollectiveOfAnySizeIsMeasuredAndVerified(t *testing.T) {
	for _, p := range []int{1, 3, 8} {
		err := onRanks(t, p, func(ctx context.Context, b *Bench) error {
			for _, c := range sched.Collectives() {
				for _, bytes := range []int{0, 8, 1004} {
					if c == sched.Barrier && bytes > 0 {
						continue
					}
					row, err := b.Measure(ctx, Cell{Collective: c, Root: RotatingRoot, Bytes: bytes})
					if err != nil {
						return err
					}
					if row.Collective != c.String() || row.Algorithm == "" || row.Ranks != p || row.Bytes != bytes || !row.Verified || row.Transport != "inproc" {
						t.Errorf("%v of %d bytes on %d ranks: the row is %+v", c, bytes, p, row)
					}
					if row.Iterations < checkInterval || row.Min <= 0 || row.Min > row.Median || row.Median > row.P99 || row.Mean < row.Min || row.Mean > row.P99 {
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

// Beside an algorithm that is named, a row says which one a call selects.
func TestARowNamesTheAlgorithmThatACallSelects(t *testing.T) {
	err := onRanks(t, 3, func(ctx context.Context, b *Bench) error {
		for _, form := range []string{"", nonblocking, prepared, half} {
			cell := Cell{Collective: sched.AllGather, Form: form, Bytes: 8}
			free, err := b.Measure(ctx, cell)
			if err != nil {
				return err
			}
			cell.Algorithm = "ring"
			named, err := b.Measure(ctx, cell)
			if err != nil {
				return err
			}
			if free.Selected != free.Algorithm || named.Selected != free.Algorithm || named.Algorithm != "ring" {
				t.Errorf("%s: unnamed %q, %q; named %q, %q", cell.Name(), free.Algorithm, free.Selected, named.Algorithm, named.Selected)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// The time is over before the samples tell the median.
func TestARowSaysThatItsMedianIsNotStable(t *testing.T) {
	err := onRanks(t, 2, func(ctx context.Context, b *Bench) error {
		b.Time = 0
		row, err := b.Measure(ctx, Cell{Collective: sched.Barrier})
		if err == nil && (row.Stable || row.Iterations == 0) {
			t.Errorf("after %d samples at most, the row is %+v", minSamples-1, row)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// A call in which the rank sleeps makes the processor leave it.
func TestTheContextSwitchesOfACallAreCounted(t *testing.T) {
	if _, known := contextSwitches(); !known {
		t.Skip("this system counts no context switches")
	}
	err := onRanks(t, 2, func(ctx context.Context, b *Bench) error {
		s, err := b.loop.run(ctx, b.Comm, b.Time, func(context.Context) error {
			if b.Comm.Rank() == 0 {
				time.Sleep(time.Millisecond)
			}
			return nil
		})
		if err != nil {
			return err
		}
		n, err := b.switches(ctx, s)
		if err == nil && *n < 1 {
			err = fmt.Errorf("rank 0 has slept in each call, and a call has %g context switches", *n)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestEveryPatternOfAnySizeIsMeasuredAndVerified(t *testing.T) {
	for _, p := range []int{1, 2, 3, 4, 6} {
		err := onRanks(t, p, func(ctx context.Context, b *Bench) error {
			for _, pattern := range Patterns() {
				for _, bytes := range []int{0, 8, 1004, 100_000} {
					row, err := b.Measure(ctx, Cell{Pattern: pattern, Root: RotatingRoot, Bytes: bytes})
					if err != nil {
						return err
					}
					if row.Collective != pattern || row.Algorithm == "" || row.Ranks != p || row.Bytes != bytes || !row.Verified {
						t.Errorf("%s of %d bytes on %d ranks: the row is %+v", pattern, bytes, p, row)
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

func TestEveryFormOfAnySizeIsMeasuredAndVerified(t *testing.T) {
	var ops []Cell
	for _, c := range sched.Collectives() {
		ops = append(ops, Cell{Collective: c, Root: RotatingRoot})
	}
	for _, p := range Patterns() {
		ops = append(ops, Cell{Pattern: p})
	}
	for _, p := range []int{1, 3, 4} {
		measured := map[string]int{}
		err := onRanks(t, p, func(ctx context.Context, b *Bench) error {
			for _, cell := range ops {
				for _, cell.Form = range FormsOf(cell) {
					for _, cell.Bytes = range []int{0, 8, 1008} {
						if cell.Collective == sched.Barrier && cell.Pattern == "" && cell.Bytes > 0 {
							continue
						}
						row, err := b.Measure(ctx, cell)
						if err != nil {
							return fmt.Errorf("%s of %d bytes: %w", cell.Name(), cell.Bytes, err)
						}
						if row.Collective != cell.Name() || row.Algorithm == "" || row.Ranks != p || row.Bytes != cell.Bytes || !row.Verified || row.Min <= 0 {
							t.Errorf("%s of %d bytes on %d ranks: the row is %+v", cell.Name(), cell.Bytes, p, row)
						}
						if o := row.Overlap; (o != nil) != (cell.Form == overlap) || o != nil && (*o < 0 || *o > 1) {
							t.Errorf("%s: the overlap is %v", cell.Name(), o)
						}
						if b.Comm.Rank() == 0 {
							measured[cell.Form]++
						}
					}
				}
			}
			return nil
		})
		if err != nil || len(measured) != len(Forms()) {
			t.Errorf("%d ranks: %v; rows by form: %v", p, err, measured)
		}
	}
}

func TestAWrongElementOfAColumnIsFound(t *testing.T) {
	for _, cell := range []Cell{{Pattern: "exchange"}, {Collective: sched.Scatter}, {Collective: sched.Gather}} {
		cell.Form, cell.Bytes = columns, 80
		err := onRanks(t, 2, func(ctx context.Context, b *Bench) error {
			if err := b.reserve(cell); err != nil {
				return err
			}
			w := newColumns(b.Comm, cell, &b.memory)
			if err := w.verify(ctx); err != nil {
				return nil // which the test takes for no error
			}
			w.out[len(w.out)/2]++
			return w.compare(0)
		})
		if err == nil || !strings.Contains(err.Error(), "want") {
			t.Errorf("%s: the error is %v", cell.Name(), err)
		}
	}
}

func TestAFormThatACallDoesNotHaveIsAnError(t *testing.T) {
	for want, cell := range map[string]Cell{
		`bcast: no form "uneven": want nonblocking, overlap, prepared, half`: {Collective: sched.Bcast, Form: uneven},
		`exchange: no form "half": want columns`:                             {Pattern: "exchange", Form: half},
		`halo:columns: halo has no other forms`:                              {Pattern: "halo", Form: columns},
		`exchange:columns of 12 bytes: want a multiple of 8`:                 {Pattern: "exchange", Form: columns, Bytes: 12},
	} {
		if err := cell.Valid(); err == nil || err.Error() != want {
			t.Errorf("%s: the error is %v, want %s", cell.Name(), err, want)
		}
	}
}

// verify checks one call of a cell.
func verify(ctx context.Context, b *Bench, cell Cell) error {
	if err := b.reserve(cell); err != nil {
		return err
	}
	if cell.Collective.Combines() {
		return newWork[float32](b.Comm, cell, &b.memory).verify(ctx)
	}
	return newWork[byte](b.Comm, cell, &b.memory).verify(ctx)
}

func TestEveryAlgorithmsResultPassesVerify(t *testing.T) {
	for _, p := range []int{2, 7, 8} {
		err := onRanks(t, p, func(ctx context.Context, b *Bench) error {
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

func TestOneWrongElementIsFound(t *testing.T) {
	for _, c := range sched.Collectives() {
		if c == sched.Barrier {
			continue
		}
		for _, wrong := range []int{0, 299} {
			err := onRanks(t, 3, func(ctx context.Context, b *Bench) error {
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
	if err := b.reserve(cell); err != nil {
		return err
	}
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
	err := onRanks(t, 1, func(ctx context.Context, b *Bench) error {
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
		barrier := Cell{Collective: sched.Barrier}
		if err := b.reserve(barrier); err != nil {
			return err
		}
		w := newWork[byte](c, barrier, &b.memory)
		calls := 0
		_, err := b.loop.run(ctx, c, b.Time, func(ctx context.Context) error {
			if calls++; calls == 100 {
				cancel()
			}
			return w.run(ctx)
		})
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
	if s := summarize(samples); s.Min != 1 || s.Median != 100.5 || s.P99 != 198 || s.Mean < 100.49 || s.Mean > 100.51 {
		t.Errorf("of 1…200: %+v", s)
	}
	if s := summarize([]float64{3}); s != (Times{3, 3, 3, 3}) {
		t.Errorf("of 3: %+v", s)
	}
}

func TestAMedianIsStableWhenMostSamplesAreEqual(t *testing.T) {
	equal, bimodal := make([]float64, 40), make([]float64, 40)
	for i := range equal {
		equal[i], bimodal[i] = 100, 100
		if i%5 == 0 {
			equal[i] = 1e6 // a few outliers do not move a median
		}
		if i%2 == 0 {
			bimodal[i] = 110
		}
	}
	if !stable(equal) {
		t.Error("a few outliers make it unstable")
	}
	if stable(bimodal) || stable(equal[:minSamples-1]) {
		t.Error("it is stable too early")
	}
}

func TestLimitsAreMeasuredAndCompared(t *testing.T) {
	l := MeasureLimits(t.Context(), []int{4096, 0, 8, 8, 64 << 10})
	if len(l.Copy) != 3 || l.Copy[0].Bytes != 8 || l.Copy[1].Bytes != 4096 || l.Copy[1].Time <= 0 || l.Loopback <= 0 {
		t.Errorf("the limits are %+v", l)
	}
	if pages, free, err := hugePages(64 << 10); err == nil {
		free()
		if len(pages) != 64<<10 || l.Copy[0].Huge != 0 || l.Copy[2].Huge <= 0 {
			t.Errorf("%d bytes on huge pages; the limits are %+v", len(pages), l)
		}
	}
	row := Row{Call: Call{Transport: "tcp", Bytes: 4096}, Times: Times{Median: 3 * l.Copy[1].Time}}
	row.Compare(l)
	if row.ToCopy < 2.99 || row.ToCopy > 3.01 || row.Bandwidth != 4096/row.Median || row.ToExchange != row.Median/l.Loopback {
		t.Errorf("the row is %+v", row)
	}
}

func TestTheBandwidthOfARateIsThatOfAllItsMessages(t *testing.T) {
	row := Row{Call: Call{Collective: rate, Bytes: 1000}, Times: Times{Median: 8}}
	if row.Compare(Limits{}); row.Bandwidth != 2000 {
		t.Errorf("%d messages of 1000 bytes in 8 µs: %g MB/s", Window, row.Bandwidth)
	}
}
