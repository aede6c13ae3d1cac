package bench

import (
	"context"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/sched"
)

func TestEveryAlgorithmOfARaceIsTimedAndComparedWithTheFirst(t *testing.T) {
	err := onRanks(t, 3, func(ctx context.Context, b *Bench) error {
		race := Race{
			Cell:       Cell{Collective: sched.AllReduce, Root: RotatingRoot, Bytes: 1000},
			Algorithms: []string{"recursive-doubling", "linear", "ring"}, Margin: 0.05,
		}
		runners, err := b.Race(ctx, race)
		if err != nil {
			return err
		}
		if len(runners) != len(race.Algorithms) || runners[0].Ratio != 1 {
			t.Errorf("got %+v", runners)
		}
		for i, r := range runners {
			if r.Algorithm != race.Algorithms[i] || r.Time <= 0 || r.Ratio <= 0 || r.Low > r.Ratio || r.High < r.Ratio || r.Rounds < dropRounds || r.Rounds > maxRounds {
				t.Errorf("got %+v", r)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestARaceOfWhatDoesNotExistIsAnErrorThatNamesIt(t *testing.T) {
	err := onRanks(t, 2, func(ctx context.Context, b *Bench) error {
		_, err := b.Race(ctx, Race{Cell: Cell{Collective: sched.Bcast, Bytes: 8}, Algorithms: []string{"binomial", "rnig"}})
		return err
	})
	if err == nil || !strings.Contains(err.Error(), `bcast by rnig: `) {
		t.Errorf("the error is %v", err)
	}
}

// The probability that the median is outside is that of so many heads, or fewer, of fair
// coins: 2/2⁶, 2·(1+9)/2⁹ and 2·(1+11+55)/2¹¹.
func TestTheIntervalOfAMedianLiesBetweenSortedSamples(t *testing.T) {
	for n, k := range map[int]int{6: 1, 8: 1, 9: 2, 11: 2, 12: 3, 25: 8} {
		samples := make([]float64, n)
		for i := range samples {
			samples[n-1-i] = float64(i + 1)
		}
		if low, high := medianInterval(samples); low != float64(k) || high != float64(n+1-k) {
			t.Errorf("%d samples: %v to %v, want number %d from each end", n, low, high, k)
		}
	}
	if low, high := medianInterval([]float64{1, 1, 1, 1, 1}); low != 0 || high != maxRatio {
		t.Errorf("5 samples: %v to %v: they cannot tell", low, high)
	}
}

// ratiosOf returns a runner that has run rounds with these ratios.
func ratiosOf(ratios ...float64) *runner { return &runner{ratios: ratios} }

func TestWhoIsSlowerDropsOut(t *testing.T) {
	for _, test := range []struct {
		what   string
		ratios []float64
		want   bool
	}{
		{"two rounds", []float64{2, 2}, false},
		{"slower in each of three", []float64{1.01, 2, 1.1}, true},
		{"faster in one of three", []float64{1.01, 0.99, 1.1}, false},
		{"faster, but not by the margin", []float64{0.97, 0.97, 0.98, 0.97, 0.97, 0.98}, true},
		{"perhaps faster by the margin", []float64{0.97, 0.97, 0.98, 0.97, 0.97, 0.94}, false},
	} {
		if got := isHopeless(test.ratios, 0.05); got != test.want {
			t.Errorf("%s: got %v", test.what, got)
		}
	}
}

func TestARaceIsOverWhenAllIsClear(t *testing.T) {
	first, out := ratiosOf(), &runner{dropped: true}
	fast := ratiosOf(.8, .8, .8, .8, .8, .8, .8, .8, .8)
	unclear := ratiosOf(.8, 1, .8, 1, .8, 1, .8, 1, .8)
	for _, test := range []struct {
		what    string
		runners []*runner
		round   int
		want    bool
	}{
		{"no other after two rounds", []*runner{first}, 2, false},
		{"no other after three", []*runner{first}, 3, true},
		{"all dropped", []*runner{first, out, out}, 5, true},
		{"one clearly faster", []*runner{first, out, fast}, 9, true},
		{"one clearly faster, too early", []*runner{first, out, fast}, 8, false},
		{"another unclear", []*runner{first, fast, unclear}, 9, false},
		{"another unclear in the end", []*runner{first, fast, unclear}, maxRounds, true},
	} {
		if got := over(test.runners, test.round, 0.05); got != test.want {
			t.Errorf("%s: got %v", test.what, got)
		}
	}
}
