package tune

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/internal/bench"
	"github.com/chorale-go/chorale/internal/predict"
	"github.com/chorale-go/chorale/internal/selection"
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// A rule is worth its while if its algorithm takes less time than the built-in choice by
// Margin of that. A prediction alone must promise more, since it errs.
const (
	Margin          = 0.05
	PredictedMargin = 0.3
)

const (
	nearBest      = 2.0     // candidates take up to so many times the least predicted time
	maxCandidates = 4       // of a race, beside the built-in choice
	maxSimulated  = 1 << 15 // blocks of all ranks: longer pipelines take long to simulate
)

// A Contest is a call for which a selection looks for a faster algorithm.
type Contest struct {
	Collective sched.Collective
	Ranks      int
	Bytes      int // of the vector, or of one part where the vector is one part per rank
	BuiltIn    Guess
	Candidates []Guess // to take its place, the fastest first
}

// A Guess is the time of a call by an algorithm in a simulated loop of them, in µs: what a race
// measures.
type Guess struct {
	Algorithm string
	Time      float64
}

// NewContest predicts what a call takes by the algorithms of the catalog, and leaves those
// that may be the fastest. The model's formulas choose the parameters of each, and the
// simulation compares them.
func NewContest(p *model.Profile, transport string, processors int, c sched.Collective, ranks, bytes int) (Contest, error) {
	t := Contest{Collective: c, Ranks: ranks, Bytes: bytes}
	link, err := p.Link(transport)
	if err != nil {
		return t, err
	}
	builtIn, err := selection.BuiltIn(selection.Query{Collective: c, Ranks: ranks, Bytes: bytes, Transport: transport, Processors: processors})
	if err != nil {
		return t, err
	}
	call := predict.Call{Collective: c, Ranks: ranks, Bytes: bytes, Transport: transport}
	var known []*sched.Schedule
	guess := func(spec string) (g Guess, err error) {
		call.Algorithm = spec
		s, err := call.Schedule()
		switch {
		case err != nil:
			return g, err
		case s.Blocks*ranks > maxSimulated:
			return g, errors.New("too long to simulate")
		case slices.ContainsFunc(known, func(o *sched.Schedule) bool { return sameSteps(s, o) }):
			return g, errors.New("another name for the same steps")
		}
		known = append(known, s)
		µs, err := predict.TimeInLoop(p, call, bench.RotatingRoot)
		return Guess{spec, µs}, err
	}
	if t.BuiltIn, err = guess(builtIn.Algorithm); err != nil {
		return t, fmt.Errorf("%v by %s: %w", c, builtIn.Algorithm, err)
	}
	prices := predict.TextbookModel(p, link, 1, float64(bytes))
	seen := []string{builtIn.Algorithm}
	for _, a := range algo.For(c) {
		if a.Restrictions.EqualBlocks { // other lengths than those of a race cost a copy
			continue
		}
		for _, spec := range []string{a.Name, cheapest(c, a.Name, ranks, bytes, prices)} {
			if spec == "" || slices.Contains(seen, spec) {
				continue
			}
			seen = append(seen, spec)
			if g, err := guess(spec); err == nil { // others are not for so many ranks, or nothing new
				t.Candidates = append(t.Candidates, g)
			}
		}
	}
	slices.SortStableFunc(t.Candidates, func(a, b Guess) int { return cmp.Compare(a.Time, b.Time) })
	least := t.BuiltIn.Time
	if len(t.Candidates) > 0 {
		least = min(least, t.Candidates[0].Time)
	}
	t.Candidates = slices.DeleteFunc(t.Candidates, func(g Guess) bool { return g.Time > nearBest*least })
	t.Candidates = t.Candidates[:min(len(t.Candidates), maxCandidates)]
	return t, nil
}

// sameSteps reports whether all ranks do the same in two schedules: recursive multiplying
// with a radix of 2 is recursive doubling.
func sameSteps(s, o *sched.Schedule) bool {
	if s.Blocks != o.Blocks {
		return false
	}
	var one, other sched.Builder
	for rank := range s.P {
		if !s.Make(&one, rank).Equal(o.Make(&other, rank)) {
			return false
		}
	}
	return true
}

// cheapest returns an algorithm with the parameters that the formulas call best, or "".
func cheapest(c sched.Collective, name string, ranks, bytes int, prices model.Model) string {
	whole := bytes
	if (&sched.Schedule{Collective: c}).Partitioned() {
		whole *= ranks
	}
	best, err := algo.Cheapest(c, ranks, 0, float64(whole), whole, prices, algo.Constraints{Candidates: []string{name}})
	if err != nil {
		return ""
	}
	return best.Spec
}

// Race returns the race of the candidates with the built-in choice, or of one of them.
func (t Contest) Race(only string) bench.Race {
	r := bench.Race{
		Cell:       bench.Cell{Collective: t.Collective, Root: bench.RotatingRoot, Bytes: t.Bytes},
		Algorithms: []string{t.BuiltIn.Algorithm}, Margin: Margin,
	}
	for _, g := range t.Candidates {
		if only == "" || g.Algorithm == only {
			r.Algorithms = append(r.Algorithms, g.Algorithm)
		}
	}
	return r
}

// An Outcome is what a contest has found.
type Outcome struct {
	Contest
	Winner      Guess // takes the place of the built-in choice; none if its Algorithm is ""
	BuiltInTime float64
	Predicted   bool
	NotSlower   []string // than the built-in choice: the winner among them
}

// Predict decides a contest by the simulation alone.
func (t Contest) Predict() Outcome {
	o := Outcome{Contest: t, BuiltInTime: t.BuiltIn.Time, Predicted: true}
	for _, g := range t.Candidates {
		if g.Time <= t.BuiltIn.Time {
			o.NotSlower = append(o.NotSlower, g.Algorithm)
		}
	}
	if len(t.Candidates) > 0 && t.Candidates[0].Time < (1-PredictedMargin)*t.BuiltIn.Time {
		o.Winner = t.Candidates[0]
	}
	return o
}

// Decide decides a contest by a race: the winner is the fastest of those that are faster by
// the margin.
func (t Contest) Decide(runners []bench.Runner) Outcome {
	o := Outcome{Contest: t, BuiltInTime: runners[0].Time}
	least := math.Inf(1)
	for _, r := range runners[1:] {
		if r.Ratio <= 1 {
			o.NotSlower = append(o.NotSlower, r.Algorithm)
		}
		if r.Wins(Margin) && r.Ratio < least {
			least, o.Winner = r.Ratio, Guess{r.Algorithm, r.Time}
		}
	}
	return o
}

// Confirm decides a contest by a further race, of the winner and the built-in choice. Ranks of
// another job have other places in memory and on processors: only who wins there too is a
// winner.
func (o *Outcome) Confirm(runners []bench.Runner) {
	if o.Winner.Algorithm == "" {
		return // it has lost before
	}
	again := o.Contest.Decide(runners)
	if again.Winner.Algorithm != o.Winner.Algorithm {
		o.Winner = Guess{}
	}
	if len(again.NotSlower) == 0 {
		o.NotSlower = slices.DeleteFunc(o.NotSlower, func(a string) bool { return a == runners[1].Algorithm })
	}
}

// Rules returns the rules that follow from the outcomes for one collective and one number of
// ranks, in ascending order of bytes. A rule holds for the bytes of its contest and, where its
// algorithm was not slower than the built-in choice at the next smaller or larger size, up to
// half the way there in octaves, and no farther than by a factor of 2. The least size stands
// for all below.
func Rules(outcomes []Outcome) (rules []model.Rule) {
	for i, o := range outcomes {
		w := o.Winner.Algorithm
		if w == "" {
			continue
		}
		r := model.Rule{
			Collective: o.Collective.String(), Ranks: o.Ranks, From: o.Bytes, To: o.Bytes, Algorithm: w,
			Predicted: o.Predicted, Bytes: o.Bytes,
			Time: o.Winner.Time, BuiltIn: o.BuiltIn.Algorithm, BuiltInTime: o.BuiltInTime,
		}
		if i == 0 {
			r.From = 0
		} else if slices.Contains(outcomes[i-1].NotSlower, w) {
			r.From = max(between(outcomes[i-1].Bytes, o.Bytes), o.Bytes/2)
		}
		if i+1 < len(outcomes) && slices.Contains(outcomes[i+1].NotSlower, w) {
			r.To = min(between(o.Bytes, outcomes[i+1].Bytes)-1, 2*o.Bytes-1)
		}
		rules = append(rules, r)
	}
	return rules
}

// between returns the geometric mean.
func between(a, b int) int { return int(math.Round(math.Sqrt(float64(a) * float64(b)))) }

// Ranks returns the numbers of ranks for which a selection is made: up to twice the
// processors, and a few that share them in larger numbers.
func Ranks(processors int, quick bool) (all []int) {
	for p := 2; p <= max(4, 2*processors); p *= 2 {
		all = append(all, p)
		if half := p + p/2; !quick && half <= max(4, 2*processors) {
			all = append(all, half)
		}
	}
	if !quick {
		all = append(all, 2*slices.Max(all))
	}
	return all
}
