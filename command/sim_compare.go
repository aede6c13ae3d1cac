package command

import (
	"math"
	"slices"
	"strings"

	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sim"
)

// A reference is a time with which a simulated time is compared.
type reference struct {
	time  float64
	ratio float64 // the simulated time over this one; NaN if this is 0
}

// compare compares the simulated time with the time of a cost.
func (e *scenario) compare(r *sim.Result, cost model.Cost) reference {
	return compareWith(r, e.config.Model, cost)
}

func compareWith(r *sim.Result, m model.Model, cost model.Cost) reference {
	ref := reference{m.Time(cost), math.NaN()}
	if ref.time > 0 {
		ref.ratio = r.Time / ref.time
	}
	return ref
}

// bounds are the lower bounds for any algorithm on one port: of start-ups, words and
// combining alone, and of their sum.
type bounds struct{ startups, words, combines, sum reference }

func (e *scenario) bounds(r *sim.Result) bounds {
	b, m := e.bound, e.cheapest()
	return bounds{
		startups: compareWith(r, m, model.Cost{Startups: b.Startups}),
		words:    compareWith(r, m, model.Cost{Words: b.Words}),
		combines: compareWith(r, m, model.Cost{Combines: b.Combines}),
		sum:      compareWith(r, m, b),
	}
}

// exact is the largest difference from 1 of a ratio that needs no explanation.
const exact = 1e-9

// differs returns the reasons for a difference between the simulated time and the
// formula's, as far as they follow from the scenario. It is empty if they agree.
func (e *scenario) differs(r *sim.Result) []string {
	reasons := []string{}
	if e.formula == nil {
		return reasons
	}
	f := e.compare(r, e.formula.cost)
	if math.Abs(f.ratio-1) <= exact || f.time == r.Time {
		return reasons
	}
	c := e.config
	for _, reason := range []struct {
		holds bool
		text  string
	}{
		{e.formula.allPort && !c.AllPort, "the formula is for --ports all"},
		{!e.formula.allPort && c.AllPort, "the formula is for one port"},
		{c.Machine != nil, "the formula knows one line, and no calls, exchanges, caches or shared processors"},
		{c.MemoryBandwidth > 0, "the formula knows no limit of memory"},
		{c.Share && r.MaxLinkLoad > 1 || waitsForLink(r), noCongestion},
		{c.Model.Th > 0, "the formula counts no hops"},
		{c.StoreAndForward && c.Topology.Diameter() > 1, "the formula is for cut-through"},
		{c.Sync, "the formula lets every rank begin a step when it can"},
		{e.uneven(), "the formula expects equal pieces"},
		{strings.ContainsAny(e.formula.text, "≤≈"), "the formula is approximate"},
	} {
		if reason.holds {
			reasons = append(reasons, reason.text)
		}
	}
	if len(reasons) == 0 && r.MaxLinkLoad > 1 { // congestion has changed the order of messages
		reasons = append(reasons, noCongestion)
	}
	return reasons
}

// free reports whether the network adds nothing to a time, whatever its shape.
func (e *scenario) free(r *sim.Result) bool {
	c := e.config
	return r.Messages > 0 && c.Machine == nil && c.Between == nil && c.Model.Th == 0 && !c.StoreAndForward && !c.Share && r.MaxLinkLoad <= 1 && !waitsForLink(r)
}

// freeNote says why two topologies cost the same.
const freeNote = "note: with th 0, all networks cost the same on which no message waits for a link"

const noCongestion = "the formula expects no congestion"

// waitsForLink reports whether a message on the critical path waits for a link.
func waitsForLink(r *sim.Result) bool {
	return slices.ContainsFunc(r.Path, func(l sim.Leg) bool { return strings.HasPrefix(l.WaitedFor, "link ") })
}

// uneven reports whether a vector is cut into pieces of different lengths.
func (e *scenario) uneven() bool {
	for _, p := range e.parts {
		if fitting(p.Schedule, p.Words) != p.Words {
			return true
		}
	}
	return false
}
