package main

import (
	"math"
	"slices"
	"strings"

	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sim"
)

// A yardstick is something to compare a simulated time with.
type yardstick struct {
	time  float64
	ratio float64 // the simulated time by this one; NaN if this is 0
}

func (e *scenario) against(r *sim.Result, cost model.Cost) yardstick {
	y := yardstick{e.config.Model.Time(cost), math.NaN()}
	if y.time > 0 {
		y.ratio = r.Time / y.time
	}
	return y
}

// bounds is what no algorithm goes below on one port: start-ups, words and
// combining alone, and one after another.
type bounds struct{ startups, words, combines, sum yardstick }

func (e *scenario) bounds(r *sim.Result) bounds {
	b := e.bound
	return bounds{
		startups: e.against(r, model.Cost{Startups: b.Startups}),
		words:    e.against(r, model.Cost{Words: b.Words}),
		combines: e.against(r, model.Cost{Combines: b.Combines}),
		sum:      e.against(r, b),
	}
}

// exact is how near to 1 a ratio must be to need no explanation.
const exact = 1e-9

// differs says why the simulated time is not the formula's, as far as that
// follows from what was asked. It is empty if they agree.
func (e *scenario) differs(r *sim.Result) []string {
	reasons := []string{}
	if e.formula == nil {
		return reasons
	}
	y := e.against(r, e.formula.cost)
	if math.Abs(y.ratio-1) <= exact || y.time == r.Time {
		return reasons
	}
	c := e.config
	for _, reason := range []struct {
		holds bool
		words string
	}{
		{e.formula.allPort && !c.AllPort, "the formula is for --ports all"},
		{!e.formula.allPort && c.AllPort, "the formula is for one port"},
		{c.MemoryBandwidth > 0, "the formula knows no limit of memory"},
		{c.Share && r.MaxLinkLoad > 1 || waitsForLink(r), noCongestion},
		{c.Model.Th > 0, "the formula counts no hops"},
		{c.StoreAndForward && c.Topology.Diameter() > 1, "the formula is for cut-through"},
		{c.Sync, "the formula lets every rank begin a step when it can"},
		{e.uneven(), "the formula expects equal pieces"},
		{strings.ContainsAny(e.formula.text, "≤≈"), "the formula is approximate"},
	} {
		if reason.holds {
			reasons = append(reasons, reason.words)
		}
	}
	if len(reasons) == 0 && r.MaxLinkLoad > 1 { // it has changed the order of things
		reasons = append(reasons, noCongestion)
	}
	return reasons
}

const noCongestion = "the formula expects no congestion"

// waitsForLink reports whether a message that decides the time waits for a
// link.
func waitsForLink(r *sim.Result) bool {
	return slices.ContainsFunc(r.Path, func(l sim.Leg) bool { return strings.HasPrefix(l.For, "link ") })
}

// uneven reports whether some vector is cut into pieces that differ.
func (e *scenario) uneven() bool {
	for _, p := range e.parts {
		if fitting(p.Schedule, p.Words) != p.Words {
			return true
		}
	}
	return false
}
