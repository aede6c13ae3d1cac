package algo

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Constraints says what a call asks of its algorithm besides the collective. The
// zero value suits most calls: the operator commutes, all parts are equally long,
// and a rank has one port.
type Constraints struct {
	InOrder    bool     // the operator does not commute
	Uneven     bool     // the ranks' parts differ in length
	AllPort    bool     // ranks use all their links at once: algorithms restricted to that are allowed
	Candidates []string // the names to choose from; nil means all
}

// allow reports whether an algorithm meets the constraints on p ranks.
func (n Constraints) allow(a *Algorithm, p int) bool {
	r := a.Restrictions
	switch {
	case r.Allow(p) != nil, r.Commutative && n.InOrder, r.AllPort && !n.AllPort:
		return false
	case (r.EqualParts || r.EqualBlocks) && n.Uneven:
		return false
	}
	return n.Candidates == nil || slices.Contains(n.Candidates, a.Name)
}

// A Choice is the result of [Cheapest].
type Choice struct {
	Spec   string // the algorithm and its parameters, in the canonical form of Schedule.Algorithm
	Cost   model.Cost
	Reason string // in one line: its time, that of the next best, and the m at which the two are equal
}

// Cheapest returns the algorithm that takes the least time under a model by the
// formulas of the catalog, with its best parameters. It considers every algorithm
// that meets the constraints and, of each, every number of stages, the best number
// of pieces, and the mesh shapes and radices that can be best. The other arguments
// are those of [Price].
//
// The formulas ignore the network, and assume one port except for algorithms that
// are restricted to all ports. An algorithm that cuts the vector in more pieces
// than it has words is left out. Of equal times, the one with fewer start-ups is
// taken, and of these the first of the catalog.
//
// Cheapest makes no program. It evaluates fewer than 1000 formulas for any p.
func Cheapest(c sched.Collective, p, root int, words float64, bytes int, m model.Model, constraints Constraints) (Choice, error) {
	q := query{call{p: p, root: root, bytes: bytes}, c, words, m}
	all, err := q.all(constraints)
	if err != nil {
		return Choice{}, fmt.Errorf("algo: the cheapest %v on %d ranks: %w", c, p, err)
	}
	return Choice{all[0].spec, all[0].cost, q.explain(all)}, nil
}

// A query is the arguments of [Cheapest].
type query struct {
	call
	collective sched.Collective
	words      float64
	model      model.Model
}

// A candidate is an algorithm with parameters, and its time. The time is infinite
// if the algorithm does not suit the call.
type candidate struct {
	spec string
	cost model.Cost
	time float64
}

// infeasible is worse than every other candidate.
var infeasible = candidate{time: math.Inf(1)}

// compare puts the better candidate first. Times that differ by rounding alone
// are equal.
func (k candidate) compare(other candidate) int {
	if by := k.time - other.time; math.Abs(by) > 1e-12*min(k.time, other.time) {
		return cmp.Compare(k.time, other.time)
	}
	return cmp.Compare(k.cost.Startups, other.cost.Startups)
}

// better returns the better of two candidates, or the first if they are equal.
func (k candidate) better(other candidate) candidate {
	if other.time < infeasible.time && k.compare(other) > 0 {
		return other
	}
	return k
}

// all returns the best candidate of each algorithm, the best of all first.
func (q *query) all(constraints Constraints) (all []candidate, err error) {
	if err := q.ranks(q.collective); err != nil {
		return nil, err
	}
	if !(q.words >= 0) || math.IsInf(q.words, 0) {
		return nil, fmt.Errorf("%v words: want 0 or more", q.words)
	}
	for _, name := range constraints.Candidates {
		if find(q.collective, name) == nil {
			return nil, unknown(q.collective, name)
		}
	}
	for _, a := range rows() {
		if a.Collective != q.collective || a.cost == nil || !constraints.allow(a, q.p) {
			continue
		}
		c := q.call
		c.values = make(map[string]value)
		if best := q.best(a, c, a.Name, a.Params); best.time < infeasible.time {
			all = append(all, best)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: not for %v words, or not for what the call needs: want others of %s",
			cmp.Or(strings.Join(constraints.Candidates, "+"), "all"), q.words, strings.Join(names(q.collective), ", "))
	}
	slices.SortStableFunc(all, candidate.compare)
	return all, nil
}

// best returns the best candidate of an algorithm. The parameters in params have
// no value yet; spec names the algorithm and the values of the others.
func (q *query) best(a *Algorithm, c call, spec string, params []Param) candidate {
	if len(params) == 0 {
		return q.price(a, c, spec)
	}
	p := &params[0]
	standard, err := p.standard(c)
	if err != nil {
		return infeasible
	}
	with := func(v value) candidate {
		if p.check != nil && p.check(c, v) != nil {
			return infeasible
		}
		c.values[p.Key] = v
		if v.text != standard.text {
			return q.best(a, c, spec+","+p.Key+"="+v.text, params[1:])
		}
		return q.best(a, c, spec, params[1:])
	}
	best := with(standard)
	for _, v := range p.values(c) {
		best = best.better(with(v))
	}
	if p.pieces != nil {
		best = best.better(leastPieces(min(q.words, maxPieces), func(k int) candidate { return with(p.pieces(c, k)) }))
	}
	return best
}

// values returns the values that may be best, without those that set the number
// of pieces.
func (p *Param) values(c call) (all []value) {
	switch {
	case p.candidates != nil:
		return p.candidates(c)
	case p.parse == nil:
		for word := range strings.SplitSeq(p.Values, "|") {
			all = append(all, value{text: word})
		}
	}
	return all
}

// price evaluates an algorithm whose parameters all have values.
func (q *query) price(a *Algorithm, c call, spec string) candidate {
	if pieces := a.build(c).blocks / q.parts(); pieces > 1 && float64(pieces) > q.words/float64(q.parts()) {
		return infeasible
	}
	cost := a.cost(c, q.words)
	return candidate{spec: spec, cost: cost, time: q.model.Time(cost)}
}

// parts returns the number of parts of the vector, which is 1 if it is not
// partitioned.
func (q *query) parts() int {
	if s := (sched.Schedule{Collective: q.collective}); s.Partitioned() {
		return q.p
	}
	return 1
}

// leastPieces finds the best number of pieces, up to most. More pieces start more
// messages, and longer pieces keep more ranks waiting, so the time falls and then
// rises. The best number is therefore near the best power of two; a search in
// steps that halve finds it.
func leastPieces(most float64, try func(k int) candidate) candidate {
	best, at := infeasible, 1
	evaluate := func(k int) {
		if k < 1 || float64(k) > most {
			return
		}
		if found := best.better(try(k)); found != best {
			best, at = found, k
		}
	}
	for k := 1; float64(k) <= most; k *= 2 {
		evaluate(k)
	}
	for step := at / 2; step > 0; step /= 2 {
		from := at
		evaluate(from - step)
		evaluate(from + step)
	}
	evaluate(int(most)) // segments of a few bytes give no other number nearby
	return best
}

// explain compares the best candidate with the next that takes longer. While
// both keep their parameters, their times are linear in the words; m* is where
// the two lines cross.
func (q *query) explain(all []candidate) string {
	best := all[0]
	if len(all) == 1 {
		return fmt.Sprintf("%s: %s", best.spec, short(best.time))
	}
	next := slices.IndexFunc(all, func(k candidate) bool { return k.time > best.time*(1+1e-12) })
	if next < 0 {
		return fmt.Sprintf("%s: %s, and no other takes longer", best.spec, short(best.time))
	}
	other := all[next]
	words := fmt.Sprintf("%s: %s against %s of %s", best.spec, short(best.time), short(other.time), other.spec)
	startup, perWord := q.linear(best)
	otherStartup, otherPerWord := q.linear(other)
	gain := otherPerWord - perWord
	crossover := (startup - otherStartup) / gain / float64(q.parts())
	switch {
	case math.Abs(gain) <= 1e-12*max(perWord, otherPerWord), !(crossover > 0):
		return words
	case gain > 0:
		return fmt.Sprintf("%s; from m* = %s words on", words, short(crossover))
	}
	return fmt.Sprintf("%s; up to m* = %s words", words, short(crossover))
}

// linear returns a candidate's time for no words, and its time for each word.
func (q *query) linear(k candidate) (startup, perWord float64) {
	none, err := Price(q.collective, k.spec, q.p, q.root, q.bytes, 0)
	if err != nil || q.words == 0 {
		return k.time, 0
	}
	startup = q.model.Time(none)
	return startup, (k.time - startup) / q.words
}

// short formats a time or a number of words.
func short(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }
