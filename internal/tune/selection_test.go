package tune

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chorale-go/chorale/internal/bench"
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// machineProfile is of a machine whose messages take 1 µs and 1 µs more for each 1000 bytes.
func machineProfile() *model.Profile {
	return &model.Profile{
		Version: model.ProfileVersion,
		Node:    model.Node{Processors: 16, Copy: model.Line(0, 1e-4)},
		Links:   []model.Link{{Transport: "tcp", OneWay: model.Line(1, 1e-3), Exchange: model.Line(1, 1e-3)}},
	}
}

func TestAContestLeavesWhatMayBeTheFastest(t *testing.T) {
	for _, test := range []struct {
		c            sched.Collective
		bytes        int
		keeps, drops string
	}{
		{sched.AllReduce, 8, "recursive-multiplying", "ring"},
		{sched.AllReduce, 8, "hierarchical", "butterfly"}, // which is recursive doubling among 16
		{sched.AllReduce, 8, "hierarchical", "tree"},      // a rank waits for the whole tree before its next call
		{sched.Bcast, 8, "chain", "linear"},               // while a vector is under way, the next root sends
		{sched.AllReduce, 1 << 20, "swing", "circulant"},  // which copies more within each rank
		{sched.Barrier, 0, "tree", "linear"},
	} {
		got, err := NewContest(machineProfile(), "tcp", 16, test.c, 16, test.bytes)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		least := got.BuiltIn.Time
		for i, g := range got.Candidates {
			names = append(names, g.Algorithm)
			if g.Time > nearBest*min(least, got.Candidates[0].Time) || i > 0 && g.Time < got.Candidates[i-1].Time {
				t.Errorf("%v of %d bytes: the candidates are %+v", test.c, test.bytes, got.Candidates)
			}
		}
		if got.BuiltIn.Time <= 0 || len(names) > maxCandidates || slices.Contains(names, got.BuiltIn.Algorithm) || slices.Contains(names, test.drops) ||
			test.keeps != "" && !slices.Contains(names, test.keeps) {
			t.Errorf("%v of %d bytes: got %+v", test.c, test.bytes, got)
		}
	}
}

func TestAContestNeedsAProfileOfTheTransport(t *testing.T) {
	if _, err := NewContest(machineProfile(), "shm", 16, sched.Bcast, 4, 8); err == nil {
		t.Error("a transport that the profile has not: want an error")
	}
}

// contestOf returns a contest of a few algorithms for a bcast on 4 ranks.
func contestOf(bytes int, times ...float64) Contest {
	c := Contest{Collective: sched.Bcast, Ranks: 4, Bytes: bytes, BuiltIn: Guess{"binomial", times[0]}}
	for i, time := range times[1:] {
		c.Candidates = append(c.Candidates, Guess{[]string{"linear", "chain"}[i], time})
	}
	return c
}

func runner(algorithm string, time, ratio, high float64) bench.Runner {
	return bench.Runner{Algorithm: algorithm, Time: time, Ratio: ratio, Low: ratio - (high - ratio), High: high, Rounds: 9}
}

func TestAWinnerIsFasterByTheMarginInTwoRaces(t *testing.T) {
	clear := runner("linear", 8, 0.8, 0.9)
	for _, test := range []struct {
		what          string
		first, second []bench.Runner // beside the built-in choice
		want          string
	}{
		{"faster in both", []bench.Runner{clear}, []bench.Runner{clear}, "linear"},
		{"slower in the second", []bench.Runner{clear}, []bench.Runner{runner("linear", 11, 1.1, 1.2)}, ""},
		{"unclear in the second", []bench.Runner{clear}, []bench.Runner{runner("linear", 9, 0.9, 0.96)}, ""},
		{"unclear in the first", []bench.Runner{runner("linear", 9, 0.9, 0.96)}, nil, ""},
		{"the faster of two", []bench.Runner{clear, runner("chain", 7, 0.7, 0.8)}, []bench.Runner{runner("chain", 7, 0.7, 0.8)}, "chain"},
	} {
		o := contestOf(8, 10, 8, 9).Decide(append([]bench.Runner{runner("binomial", 10, 1, 1)}, test.first...))
		if test.second != nil {
			o.Confirm(append([]bench.Runner{runner("binomial", 10, 1, 1)}, test.second...))
		}
		if o.Winner.Algorithm != test.want {
			t.Errorf("%s: got %+v", test.what, o)
		}
	}
}

func TestAPredictionMustPromiseMore(t *testing.T) {
	for _, test := range []struct {
		time float64
		want string
	}{{6.9, "linear"}, {7.1, ""}} {
		if o := contestOf(8, 10, test.time).Predict(); o.Winner.Algorithm != test.want || !o.Predicted {
			t.Errorf("%g µs in place of 10: got %+v", test.time, o)
		}
	}
}

// outcome returns what a contest has found: the algorithms that were not slower, of which the
// first has won if wins is set.
func outcome(bytes int, wins bool, notSlower ...string) Outcome {
	o := Outcome{Contest: contestOf(bytes, 10), BuiltInTime: 10, NotSlower: notSlower}
	if wins {
		o.Winner = Guess{notSlower[0], 5}
	}
	return o
}

func TestARuleHoldsWhereItsAlgorithmWasNotSlower(t *testing.T) {
	type rangeOf struct {
		From, To  int
		Algorithm string
	}
	for _, test := range []struct {
		what     string
		outcomes []Outcome
		want     []rangeOf
	}{
		{"none wins", []Outcome{outcome(8, false, "linear"), outcome(32, false)}, nil},
		{"the least stands for all below", []Outcome{outcome(8, true, "linear"), outcome(32, false)}, []rangeOf{{0, 8, "linear"}}},
		{"halfway to a tie", []Outcome{outcome(8, false, "linear"), outcome(32, true, "linear"), outcome(128, false, "linear")}, []rangeOf{{16, 63, "linear"}}},
		{"alone", []Outcome{outcome(8, false, "chain"), outcome(32, true, "linear"), outcome(128, false)}, []rangeOf{{32, 32, "linear"}}},
		{"neighbors leave no gap", []Outcome{outcome(8, true, "linear"), outcome(32, true, "linear")}, []rangeOf{{0, 15, "linear"}, {16, 32, "linear"}}},
		{"another winner", []Outcome{outcome(8, true, "linear"), outcome(32, true, "chain")}, []rangeOf{{0, 8, "linear"}, {32, 32, "chain"}}},
		{"no farther than a factor of 2", []Outcome{outcome(8, false, "linear"), outcome(128, true, "linear"), outcome(2048, false, "linear")}, []rangeOf{{64, 255, "linear"}}},
	} {
		var got []rangeOf
		for _, r := range Rules(test.outcomes) {
			got = append(got, rangeOf{r.From, r.To, r.Algorithm})
			if r.Collective != "bcast" || r.Ranks != 4 || r.Time != 5 || r.BuiltIn != "binomial" || r.BuiltInTime != 10 {
				t.Errorf("%s: got %+v", test.what, r)
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.what, diff)
		}
	}
}

func TestRanksAreChosenByTheProcessors(t *testing.T) {
	for _, test := range []struct {
		processors int
		quick      bool
		want       []int
	}{
		{1, true, []int{2, 4}},
		{2, true, []int{2, 4}},
		{2, false, []int{2, 3, 4, 8}},
		{8, true, []int{2, 4, 8, 16}},
		{8, false, []int{2, 3, 4, 6, 8, 12, 16, 32}},
	} {
		if got := Ranks(test.processors, test.quick); !slices.Equal(got, test.want) {
			t.Errorf("%d processors, quick %v: got %v, want %v", test.processors, test.quick, got, test.want)
		}
	}
}
