package algo_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// networks are models of different kinds: start-up dominates, or words do, or
// combining counts.
var networks = []model.Model{
	model.Default(),
	{Ts: 1000, Tw: 1, Top: 2},
	{Ts: 2, Tw: 0.0008},
	{Ts: 1, Tw: 10, Top: 0.3},
}

// cheapest returns a choice that must exist, and its time.
func cheapest(t *testing.T, c sched.Collective, p, root int, words float64, m model.Model, constraints algo.Constraints) (algo.Choice, float64) {
	t.Helper()
	choice, err := algo.Cheapest(c, p, root, words, int(8*words), m, constraints)
	if err != nil {
		t.Fatal(err)
	}
	return choice, m.Time(choice.Cost)
}

// price returns the time of an algorithm, or infinity if it does not suit the
// call.
func price(c sched.Collective, spec string, p, root int, words float64, m model.Model) float64 {
	s, err := algo.New(c, spec, p, root, int(8*words))
	if err != nil {
		return math.Inf(1)
	}
	pieces, part := s.Blocks, words
	if s.Partitioned() {
		pieces, part = pieces/p, words/float64(p)
	}
	cost, err := algo.Price(c, spec, p, root, int(8*words), words)
	if err != nil || pieces > 1 && float64(pieces) > part {
		return math.Inf(1)
	}
	return m.Time(cost)
}

// vector is so many words, or as many for each rank if each has a part.
func vector(c sched.Collective, p int, words float64) float64 {
	if s := (sched.Schedule{Collective: c}); s.Partitioned() {
		return words * float64(p)
	}
	return words
}

// suits reports whether an algorithm does what is needed.
func suits(r algo.Restrictions, constraints algo.Constraints) bool {
	return (!r.Commutative || !constraints.InOrder) && (!r.AllPort || constraints.AllPort) && (!r.EqualParts && !r.EqualBlocks || !constraints.Uneven)
}

func TestNoVariantBeatsTheCheapest(t *testing.T) {
	for _, c := range sched.Collectives() {
		for _, p := range sizes {
			if testing.Short() && p > 9 {
				continue
			}
			for _, root := range []int{0, p / 2} {
				if root > 0 && !c.Rooted() && c != sched.Shift {
					continue
				}
				for _, words := range []float64{0, 1, 7, 125, 10007, 1 << 21} {
					for i, m := range networks {
						constraints := algo.Constraints{InOrder: i == 1, Uneven: i == 2, AllPort: i == 3}
						neverBeaten(t, c, p, root, vector(c, p, words), m, constraints)
					}
				}
			}
		}
	}
}

func neverBeaten(t *testing.T, c sched.Collective, p, root int, words float64, m model.Model, constraints algo.Constraints) {
	t.Helper()
	choice, least := cheapest(t, c, p, root, words, m, constraints)
	what := fmt.Sprintf("%v of %v words, p %d, root %d, %+v, %+v: %s", c, words, p, root, m, constraints, choice.Spec)
	if again := price(c, choice.Spec, p, root, words, m); again != least {
		t.Errorf("%s takes %v, and its price is %v", what, least, again)
	}
	name, _, _ := strings.Cut(choice.Spec, ",")
	if a, err := algo.Lookup(c, name); err != nil || !suits(a.Restrictions, constraints) {
		t.Errorf("%s does not suit (%v)", what, err)
	}
	for _, a := range algo.For(c) {
		if !suits(a.Restrictions, constraints) {
			continue
		}
		for _, spec := range algo.Variants(a, p) {
			if strings.Contains(spec, ",leaders=") {
				continue // the price is for pieces of equal length alone
			}
			if other := price(c, spec, p, root, words, m); other < least*(1-1e-9) {
				t.Errorf("%s takes %v, and %s only %v", what, least, spec, other)
			}
		}
	}
}

// Every number of pieces, stages, radices, groups and shapes is tried, where
// Cheapest looks at few.
func TestTheBestParametersAreFoundWithoutTryingAll(t *testing.T) {
	for _, p := range []int{2, 3, 6, 8, 12, 30, 64, 100} {
		for _, words := range []float64{1, 30, 1000} {
			var pieces, segments, counts, dims []string
			for k := 1; k <= int(words); k++ {
				pieces = append(pieces, fmt.Sprint("blocks=", k))
				segments = append(segments, fmt.Sprint("segment=", (8*int(words)-1)/k+1))
			}
			for k := range p + 1 {
				counts = append(counts, fmt.Sprint(k))
			}
			for rows := 1; rows <= p; rows++ {
				for columns := 1; p%rows == 0 && columns <= p/rows; columns++ {
					if p/rows%columns == 0 {
						dims = append(dims, fmt.Sprintf("dims=%dx%dx%d", rows, columns, p/rows/columns))
					}
				}
			}
			keyed := func(key string) (all []string) {
				for _, k := range counts {
					all = append(all, key+"="+k)
				}
				return all
			}
			for _, test := range []struct {
				c      sched.Collective
				name   string
				values []string
			}{
				{sched.Bcast, "chain", segments},
				{sched.Bcast, "binary-tree", segments},
				{sched.Bcast, "split-binary", segments},
				{sched.Bcast, "circulant", pieces},
				{sched.Bcast, "knomial", keyed("k")},
				{sched.Bcast, "mesh", dims},
				{sched.Reduce, "chain", segments},
				{sched.Reduce, "in-order-binary", segments},
				{sched.Reduce, "circulant", pieces},
				{sched.AllGather, "mesh", dims},
				{sched.AllToAll, "mesh", dims},
				{sched.AllReduce, "ring", segments},
				{sched.AllReduce, "halving-exchange", keyed("stages")},
				{sched.AllReduce, "recursive-multiplying", keyed("k")},
			} {
				for _, m := range networks {
					n := vector(test.c, p, words)
					// An algorithm that does not suit at all is none to compare.
					if !slices.ContainsFunc(test.values, func(v string) bool {
						return price(test.c, test.name+","+v, p, 0, n, m) < math.Inf(1)
					}) {
						continue
					}
					choice, least := cheapest(t, test.c, p, 0, n, m, algo.Constraints{Candidates: []string{test.name}})
					for _, v := range test.values {
						if other := price(test.c, test.name+","+v, p, 0, n, m); other < least*(1-1e-9) {
							t.Errorf("%v of %v words, p %d, %+v: %s takes %v, and %s only %v", test.c, n, p, m, choice.Spec, least, v, other)
						}
					}
				}
			}
		}
	}
}

// CLAIM I5
func TestTheCheapestChangesFromWholeMessagesToPiecesAtTheCrossover(t *testing.T) {
	candidates := algo.Constraints{Candidates: []string{"binomial", "scatter-allgather"}}
	for _, m := range networks {
		for d := 2; d <= 20; d++ {
			p, lg := 1<<d, float64(d)
			crossover := m.Ts * lg / (m.Tw * (lg - 2*float64(p-1)/float64(p)))
			for _, test := range []struct {
				words float64
				want  string
			}{
				{crossover * (1 - 1e-9), "binomial"},
				{crossover, "binomial"}, // fewer start-ups
				{crossover * (1 + 1e-9), "scatter-allgather"},
			} {
				if crossover < float64(p) { // the pieces would be less than a word
					continue
				}
				choice, _ := cheapest(t, sched.Bcast, p, 0, test.words, m, candidates)
				if choice.Spec != test.want {
					t.Errorf("p %d, %+v, %v words, m* %v: %s, want %s", p, m, test.words, crossover, choice.Reason, test.want)
				}
				if said := fmt.Sprintf("m* = %.6g words", crossover); test.words != crossover && !strings.Contains(choice.Reason, said) {
					t.Errorf("p %d, %+v: %q does not say %s", p, m, choice.Reason, said)
				}
			}
		}
	}
}

// CLAIM V4
func TestTheCheapestHybridHasTheBestNumberOfStages(t *testing.T) {
	found := make(map[string]bool)
	for _, p := range []int{2, 4, 6, 8, 64, 100, 1024, 1 << 20} {
		for _, m := range networks {
			for _, words := range []float64{1, 100, 1e4, 1e7} {
				least, want := math.Inf(1), ""
				for k := range 21 {
					spec := fmt.Sprintf("halving-exchange,stages=%d", k)
					if time := price(sched.AllReduce, spec, p, 0, words, m); time < least*(1-1e-12) {
						least, want = time, spec
					}
				}
				choice, time := cheapest(t, sched.AllReduce, p, 0, words, m, algo.Constraints{Candidates: []string{"halving-exchange"}})
				if time > least*(1+1e-12) || price(sched.AllReduce, want, p, 0, words, m) != least {
					t.Errorf("p %d, %v words, %+v: %s takes %v, and %s %v", p, words, m, choice.Spec, time, want, least)
				}
				found[want] = true
			}
		}
	}
	if len(found) < 8 {
		t.Errorf("only %v are ever the best", found)
	}
}

func TestTheCheapestOfAMillionRanksIsFoundWithoutTheirPrograms(t *testing.T) {
	for _, c := range sched.Collectives() {
		for _, p := range []int{million, million - 1, 720720} {
			for _, words := range []float64{1, 1e6} {
				choice, time := cheapest(t, c, p, 0, vector(c, p, words), model.Default(), algo.Constraints{})
				if bound := model.Default().Time(algo.LowerBound(c, p, vector(c, p, words))); c != sched.Shift && time < bound*(1-1e-9) {
					t.Errorf("%v on %d ranks: %s, and the lower bound is %v", c, p, choice.Reason, bound)
				}
			}
		}
	}
}

func TestAChoiceSaysWhatItIsComparedWith(t *testing.T) {
	for _, test := range []struct {
		c          sched.Collective
		p          int
		words      float64
		candidates string
		spec       string
		why        string
	}{
		{sched.Bcast, 8, 1024, "binomial scatter-allgather", "scatter-allgather", "scatter-allgather: 1852 against 3102 of binomial; from m* = 24 words on"},
		{sched.Bcast, 8, 16, "binomial scatter-allgather", "binomial", "binomial: 78 against 88 of scatter-allgather; up to m* = 24 words"},
		{sched.Bcast, 8, 7, "scatter-allgather binomial", "binomial", "binomial: 51"},
		{sched.AllGather, 8, 8, "ring bruck", "bruck", "bruck: 37 against 77 of ring"},
		{sched.AllReduce, 8, 8, "butterfly recursive-doubling linear", "butterfly", "butterfly: 54 against 252 of linear"},
		{sched.Scatter, 4, 4096, "linear binomial", "binomial", "binomial: 3092 against 3102 of linear"},
		{sched.AllToAll, 8, 64, "pairwise bruck", "bruck", "bruck: 126, and no other takes longer"}, // fewer start-ups
		{sched.Barrier, 8, 0, "tree dissemination", "dissemination", "dissemination: 30 against 60 of tree"},
		{sched.Bcast, 1, 8, "", "linear", "linear: 0, and no other takes longer"},
	} {
		var candidates []string
		if test.candidates != "" {
			candidates = strings.Fields(test.candidates)
		}
		choice, _ := cheapest(t, test.c, test.p, 0, test.words, model.Default(), algo.Constraints{Candidates: candidates})
		if choice.Spec != test.spec || choice.Reason != test.why {
			t.Errorf("%v, p %d, %v words: got  %s, because %s\nwant %s, because %s", test.c, test.p, test.words, choice.Spec, choice.Reason, test.spec, test.why)
		}
	}
}

func TestTheCheapestIsNotAskedForInVain(t *testing.T) {
	for _, test := range []struct {
		c          sched.Collective
		p, root    int
		words      float64
		candidates []string
		want       string
	}{
		{sched.Bcast, 0, 0, 1, nil, "the cheapest bcast on 0 ranks: want at least 1 rank"},
		{sched.Bcast, 8, 8, 1, nil, "the cheapest bcast on 8 ranks: root 8: want 0 to 7"},
		{sched.Bcast, 8, 0, -1, nil, "the cheapest bcast on 8 ranks: -1 words: want 0 or more"},
		{sched.Bcast, 8, 0, math.NaN(), nil, "the cheapest bcast on 8 ranks: NaN words: want 0 or more"},
		{sched.Bcast, 8, 0, 1, []string{"choir"}, `the cheapest bcast on 8 ranks: no algorithm "choir": want ` + known(sched.Bcast)},
		{sched.Bcast, 8, 0, 8, []string{"rotated"}, "the cheapest bcast on 8 ranks: rotated: not for 8 words, or not for what the call needs: want others of " + known(sched.Bcast)},
		{sched.Bcast, 8, 0, 7, []string{"scatter-allgather"}, "the cheapest bcast on 8 ranks: scatter-allgather: not for 7 words, or not for what the call needs: want others of " + known(sched.Bcast)},
	} {
		_, err := algo.Cheapest(test.c, test.p, test.root, test.words, 0, model.Default(), algo.Constraints{Candidates: test.candidates})
		if err == nil || err.Error() != "algo: "+test.want {
			t.Errorf("got  %v\nwant algo: %s", err, test.want)
		}
	}
}

// BenchmarkCheapest prices the algorithms for a million ranks.
func BenchmarkCheapest(b *testing.B) {
	for _, c := range sched.Collectives() {
		b.Run(c.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := algo.Cheapest(c, million, 0, 1e8, 8e8, model.Default(), algo.Constraints{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
