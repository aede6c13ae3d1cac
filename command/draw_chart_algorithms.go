package command

import (
	"cmp"
	"math"
	"slices"

	"github.com/chorale-go/chorale/algo"
)

// maxSensible is how many algorithms a chart shows if none is named.
const maxSensible = 6

// A candidate is an algorithm that a chart may show.
type candidate struct {
	spec     string
	wins     bool    // it alone is the cheapest somewhere
	distance float64 // the mean of the logarithm of its cost
}

// winner returns the cheapest candidate at a quantity, and whether no other costs as little.
func (v *sweep) winner(all []candidate, at float64) (cheapest int, alone bool) {
	least := math.Inf(1)
	for i, c := range all {
		cost, err := v.formula(c.spec, at)
		switch {
		case err != nil || cost > least*(1+1e-9):
		case cost < least*(1-1e-9):
			cheapest, least, alone = i, cost, true
		default:
			alone = false
		}
	}
	return cheapest, alone
}

// sensible returns the algorithms of a chart for which none is named, each with its
// best parameters: those that are the cheapest somewhere by the formulas, and then
// those that are the closest to it. It leaves out, and does not list, algorithms that
// do not take all these ranks, that need more ports, or that are for ranks on hosts.
func (v *sweep) sensible() (specs, leftOut []string) {
	var all []candidate
	for _, a := range algo.Catalog() {
		r := a.Restrictions
		hosts := slices.ContainsFunc(a.Params, func(p algo.Param) bool { return p.Key == "hosts" }) // it is for ranks that share hosts
		if a.Collective != v.collective || hosts || r.AllPort && v.s.ports.value != "all" || r.Allow(v.p) != nil || v.by == byRanks && (r.PowerOfTwo || r.EvenRanks) {
			continue
		}
		spec, sum, n := bestAmong+a.Name, 0.0, 0
		for _, at := range v.samples() {
			if cost, err := v.formula(spec, float64(at)); err == nil && cost > 0 {
				cheapest, _ := v.formula(best, float64(at))
				sum, n = sum+math.Log(cost/cheapest), n+1
			}
		}
		if n > 0 {
			all = append(all, candidate{spec: spec, distance: sum / float64(n)})
		}
	}
	for _, at := range v.samples() {
		if i, alone := v.winner(all, float64(at)); alone { // of two ranks, many cost the same
			all[i].wins = true
		}
	}
	order := slices.SortedStableFunc(slices.Values(all), func(a, b candidate) int {
		if a.wins != b.wins {
			if a.wins {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.distance, b.distance)
	})
	for i, c := range order {
		if i < maxSensible {
			specs = append(specs, c.spec)
		} else {
			leftOut = append(leftOut, seriesName(c.spec))
		}
	}
	return specs, leftOut
}
