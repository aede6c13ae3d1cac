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

// Needs says what a call asks of its algorithm besides the collective. None of it
// is what most calls have: an operator that commutes, equal parts, one port.
type Needs struct {
	InOrder bool     // the operator does not commute
	Uneven  bool     // ranks' parts are not equally long
	AllPort bool     // ranks use all their links at once, so algorithms made for it will do
	Among   []string // the names to choose from; nil means all
}

// allow reports whether an algorithm will do for p ranks.
func (n Needs) allow(a *Algorithm, p int) bool {
	r := a.Restrictions
	switch {
	case r.Allow(p) != nil, r.Commutative && n.InOrder, r.AllPort && !n.AllPort:
		return false
	case (r.EqualParts || r.EqualBlocks) && n.Uneven:
		return false
	}
	return n.Among == nil || slices.Contains(n.Among, a.Name)
}

// A Pick is the algorithm to take.
type Pick struct {
	Spec string // with its parameters, in the canonical form of a schedule's
	Cost model.Cost
	Why  string // in a line: its time, that of the next best, and where m makes them equal
}

// Cheapest returns which algorithm takes the least time under a model, by what
// the catalogue says that it costs, and with which parameters: all algorithms
// that suit the call, and of each all numbers of stages, the best number of
// pieces, the shapes of a mesh and the radices that can be best. The other arguments are those
// of [Price].
//
// The formulas know no network. They are for one port, but for algorithms that
// are made for all. What cuts the vector in more pieces than it has words is left
// out. Of equal times the one with fewer start-ups is taken, and of these the
// first of the catalogue.
//
// It makes no program. It looks at fewer than 1000 prices, whatever p is.
func Cheapest(c sched.Collective, p, root int, words float64, bytes int, m model.Model, needs Needs) (Pick, error) {
	q := query{call{p: p, root: root, bytes: bytes}, c, words, m}
	all, err := q.all(needs)
	if err != nil {
		return Pick{}, fmt.Errorf("algo: the cheapest %v on %d ranks: %w", c, p, err)
	}
	return Pick{all[0].spec, all[0].cost, q.why(all)}, nil
}

// A query is what prices are asked for.
type query struct {
	call
	collective sched.Collective
	words      float64
	model      model.Model
}

// A candidate is an algorithm with parameters. One that does not suit the call
// has an infinite time.
type candidate struct {
	spec string
	cost model.Cost
	time float64
}

// never is worse than every other candidate.
var never = candidate{time: math.Inf(1)}

// compare puts the better candidate first. Times are equal if they are but for
// rounding.
func (k candidate) compare(other candidate) int {
	if by := k.time - other.time; math.Abs(by) > 1e-12*min(k.time, other.time) {
		return cmp.Compare(k.time, other.time)
	}
	return cmp.Compare(k.cost.Startups, other.cost.Startups)
}

// or returns the better of two candidates, the first if they are equal.
func (k candidate) or(other candidate) candidate {
	if other.time < never.time && k.compare(other) > 0 {
		return other
	}
	return k
}

// all returns the best of each algorithm, the very best first.
func (q *query) all(needs Needs) (all []candidate, err error) {
	if err := q.ranks(q.collective); err != nil {
		return nil, err
	}
	if !(q.words >= 0) || math.IsInf(q.words, 0) {
		return nil, fmt.Errorf("%v words: want 0 or more", q.words)
	}
	for _, name := range needs.Among {
		if find(q.collective, name) == nil {
			return nil, fmt.Errorf("no algorithm %q: want %s", name, names(q.collective))
		}
	}
	for _, a := range catalog {
		if a.Collective != q.collective || !needs.allow(a, q.p) {
			continue
		}
		c := q.call
		c.values = make(map[string]value)
		if best := q.best(a, c, a.Name, a.Params); best.time < never.time {
			all = append(all, best)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: not for %v words, or not for what the call needs: want others of %s",
			cmp.Or(strings.Join(needs.Among, "+"), "all"), q.words, names(q.collective))
	}
	slices.SortStableFunc(all, candidate.compare)
	return all, nil
}

// best returns the best candidate of an algorithm, some parameters of which have
// their values. Spec is what these make it.
func (q *query) best(a *Algorithm, c call, spec string, params []Param) candidate {
	if len(params) == 0 {
		return q.price(a, c, spec)
	}
	p := &params[0]
	standard, err := p.standard(c)
	if err != nil {
		return never
	}
	with := func(v value) candidate {
		if p.check != nil && p.check(c, v) != nil {
			return never
		}
		c.values[p.Key] = v
		if v.text != standard.text {
			return q.best(a, c, spec+","+p.Key+"="+v.text, params[1:])
		}
		return q.best(a, c, spec, params[1:])
	}
	best := with(standard)
	for _, v := range p.candidates(c) {
		best = best.or(with(v))
	}
	if p.pieces != nil {
		best = best.or(leastPieces(min(q.words, maxPieces), func(k int) candidate { return with(p.pieces(c, k)) }))
	}
	return best
}

// candidates returns the values that may be best, but for numbers of pieces.
func (p *Param) candidates(c call) (all []value) {
	switch {
	case p.among != nil:
		return p.among(c)
	case p.parse == nil:
		for word := range strings.SplitSeq(p.Values, "|") {
			all = append(all, value{text: word})
		}
	}
	return all
}

// price makes a candidate of an algorithm whose parameters all have values.
func (q *query) price(a *Algorithm, c call, spec string) candidate {
	if pieces := a.build(c).blocks / q.parts(); pieces > 1 && float64(pieces) > q.words/float64(q.parts()) {
		return never
	}
	cost := a.cost(c, q.words)
	return candidate{spec: spec, cost: cost, time: q.model.Time(cost)}
}

// parts returns how many ranks have a part of the vector each, or 1 if it has no
// parts.
func (q *query) parts() int {
	if s := (sched.Schedule{Collective: q.collective}); s.Partitioned() {
		return q.p
	}
	return 1
}

// leastPieces finds the best number of pieces, up to most. More of them start
// more messages, and longer ones keep more ranks waiting, so that the time falls
// and then rises. So the best is near the best power of two, and smaller and
// smaller steps lead there.
func leastPieces(most float64, try func(k int) candidate) candidate {
	best, at := never, 1
	look := func(k int) {
		if k < 1 || float64(k) > most {
			return
		}
		if found := best.or(try(k)); found != best {
			best, at = found, k
		}
	}
	for k := 1; float64(k) <= most; k *= 2 {
		look(k)
	}
	for step := at / 2; step > 0; step /= 2 {
		from := at
		look(from - step)
		look(from + step)
	}
	look(int(most)) // segments of a few bytes give no other number nearby
	return best
}

// why compares the best candidate with the next that takes longer. With the
// parameters that both have, the time of each is a line over the words: m* is
// where the lines meet.
func (q *query) why(all []candidate) string {
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
	startup, perWord := q.line(best)
	otherStartup, otherPerWord := q.line(other)
	gain := otherPerWord - perWord
	meet := (startup - otherStartup) / gain / float64(q.parts())
	switch {
	case math.Abs(gain) <= 1e-12*max(perWord, otherPerWord), !(meet > 0):
		return words
	case gain > 0:
		return fmt.Sprintf("%s; from m* = %s words on", words, short(meet))
	}
	return fmt.Sprintf("%s; up to m* = %s words", words, short(meet))
}

// line returns what a candidate takes for no words, and more for each.
func (q *query) line(k candidate) (startup, perWord float64) {
	none, err := Price(q.collective, k.spec, q.p, q.root, q.bytes, 0)
	if err != nil || q.words == 0 {
		return k.time, 0
	}
	startup = q.model.Time(none)
	return startup, (k.time - startup) / q.words
}

// short prints a time or a number of words.
func short(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }
