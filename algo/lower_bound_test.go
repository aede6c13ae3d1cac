package algo_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// weigh counts a schedule in the terms of a lower bound: messages one after
// another if ranks have one port, and the most blocks that one rank sends or
// receives, and that one rank combines.
func weigh(t *testing.T, s *sched.Schedule) model.Cost {
	steps := moments(t, s)
	sent, received, combined := make([]float64, s.P), make([]float64, s.P), make([]float64, s.P)
	for _, step := range steps {
		for _, c := range step.copies {
			if c.How != sched.Replace {
				combined[c.Rank] += float64(c.Blocks.Len())
			}
		}
		for _, m := range step.messages {
			words := float64(m.Blocks.Len())
			sent[m.From] += words
			received[m.To] += words
			if m.How != sched.Replace {
				combined[m.To] += words
			}
		}
	}
	return model.Cost{
		Startups: timeOf(s, steps, model.Model{Ts: 1}, false),
		Words:    max(slices.Max(sent), slices.Max(received)),
		Combines: slices.Max(combined),
	}
}

// CLAIM D5 S4
func TestNoScheduleBeatsALowerBound(t *testing.T) {
	everySchedule(t, []int{1, 2, 3, 4, 5, 6, 7, 8, 12, 15, 16, 17, 33, 64}, func(t *testing.T, s *sched.Schedule) {
		if s.Collective == sched.Shift && s.Root == 0 {
			return // nothing has to go anywhere
		}
		got, bound := weigh(t, s), algo.LowerBound(s.Collective, s.P, float64(s.Blocks))
		const slack = 1 - 1e-9
		if got.Startups < bound.Startups*slack || got.Words < bound.Words*slack || got.Combines < bound.Combines*slack {
			t.Errorf("%s takes %+v, and no schedule could take less than %+v", describe(s), got, bound)
		}
	})
}

// Each term is reached by some algorithm, if p is a power of two: so none of the
// bounds is too low.
//
// CLAIM D5
func TestEveryLowerBoundIsReached(t *testing.T) {
	terms := map[string]func(model.Cost) float64{
		"start-ups": func(c model.Cost) float64 { return c.Startups },
		"words":     func(c model.Cost) float64 { return c.Words },
		"combines":  func(c model.Cost) float64 { return c.Combines },
	}
	open := map[string]bool{
		"scan combines":   true, // no known algorithm shares the work without doing more of it
		"exscan combines": true,
	}
	for _, c := range sched.Collectives() {
		for _, p := range []int{2, 4, 8, 16} {
			root := 0
			if c == sched.Shift {
				root = 1
			}
			least := make(map[string]float64)
			for _, a := range algo.For(c) {
				if a.Restrictions.Allow(p) != nil {
					continue
				}
				s := newSchedule(t, c, a.Name, p, root)
				got, bound := weigh(t, s), algo.LowerBound(c, p, float64(s.Blocks))
				for term, of := range terms {
					ratio := 1.0
					if of(bound) > 0 {
						ratio = of(got) / of(bound)
					}
					if before, ok := least[term]; !ok || ratio < before {
						least[term] = ratio
					}
				}
			}
			for term, ratio := range least {
				if ratio > 1+1e-9 && !open[c.String()+" "+term] {
					t.Errorf("%v, p %d: no algorithm comes nearer to the bound of %s than %v times", c, p, term, ratio)
				}
			}
		}
	}
}

// What the catalog says is never less than the bound either, but where ranks
// use all their ports at once.
func TestNoFormulaBeatsALowerBound(t *testing.T) {
	for _, a := range algo.Catalog() {
		for p := 1; p < 300; p++ {
			if a.Restrictions.AllPort || a.Restrictions.Allow(p) != nil {
				continue
			}
			for _, spec := range algo.Variants(a, p) {
				const n = 1000
				root := 0
				if a.Collective == sched.Shift && p > 1 {
					root = 1
				}
				got, err := algo.Price(a.Collective, spec, p, root, algo.VariantBytes, n)
				if err != nil {
					t.Fatal(err)
				}
				bound := algo.LowerBound(a.Collective, p, n)
				name, _, _ := strings.Cut(spec, ",")
				if got.Startups < bound.Startups || got.Words < bound.Words*(1-1e-9) || got.Combines < bound.Combines*(1-1e-9) {
					t.Errorf("%v %s, p %d: %+v, less than the bound of %s, %+v", a.Collective, spec, p, got, name, bound)
				}
			}
		}
	}
}
