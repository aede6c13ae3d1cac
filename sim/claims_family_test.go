package sim_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/sim"
)

// On a mesh, √p − 1 messages of m words go round the rows and as many of √p m
// words round the columns.
//
// CLAIM D1
func TestAllToAllBroadcastMovesTheLeastOnRingMeshAndCube(t *testing.T) {
	ring := func(p, m float64) model.Cost { return moved(p-1, m) }
	mesh := func(p, m float64) model.Cost { return model.Cost{Startups: linesOf(p) - 2, Words: m * (p - 1)} }
	cube := func(p, m float64) model.Cost { return model.Cost{Startups: lg(p), Words: m * (p - 1)} }
	reduced := func(of func(p, m float64) model.Cost) func(p, m float64) model.Cost {
		return func(p, m float64) model.Cost { return of(p, m).Plus(model.Cost{Combines: m * (p - 1)}) }
	}
	hold(t, []claim{
		{sched.AllGather, "ring", "ring", false, ring},
		{sched.AllGather, "mesh", "torus mesh", false, mesh},
		{sched.AllGather, "recursive-doubling", "hypercube", false, cube},
		{sched.ReduceScatter, "ring", "ring", false, reduced(ring)},
		{sched.ReduceScatter, "mesh", "torus", false, reduced(mesh)},
		{sched.ReduceScatter, "recursive-halving", "hypercube", false, reduced(cube)},
	})
}

// linesOf returns how many ranks a row and a column of the mesh have: 2√p if it
// is a square.
func linesOf(p float64) float64 {
	rows, columns := sides(int(p))
	return float64(rows + columns)
}

// CLAIM D1 D3
func TestOtherNumbersOfRanksGoRoundRingsAndToriToo(t *testing.T) {
	for _, sides := range [][2]int{{1, 3}, {3, 5}, {2, 7}, {5, 5}, {7, 11}} {
		p, lines := float64(sides[0]*sides[1]), float64(sides[0]+sides[1])
		torus := fmt.Sprintf("torus:%dx%d", sides[0], sides[1])
		mesh := fmt.Sprintf("mesh,dims=%dx%d", sides[0], sides[1])
		for _, c := range []struct {
			c        sched.Collective
			spec, on string
			want     model.Cost
		}{
			{sched.AllGather, "ring", "ring", moved(p-1, 7)},
			{sched.AllGather, mesh, torus, model.Cost{Startups: lines - 2, Words: 7 * (p - 1)}},
			{sched.ReduceScatter, "ring", "ring", combined(p-1, 7)},
			{sched.ReduceScatter, mesh, torus, model.Cost{Startups: lines - 2, Words: 7 * (p - 1), Combines: 7 * (p - 1)}},
			{sched.AllToAll, "ring", "ring", moved(p-1, 7*p/2)},
			{sched.AllToAll, mesh, torus, moved(lines-2, 7*p/2)},
		} {
			r := simulateOn(t, c.on, schedule(t, c.c, c.spec, int(p), 0), 7)
			takes(t, fmt.Sprintf("%v %s on %s, p %v", c.c, c.spec, c.on, p), r, c.want)
			if r.MaxLinkLoad > 1 {
				t.Errorf("%v %s on %s, p %v: links are congested", c.c, c.spec, c.on, p)
			}
		}
	}
}

// CLAIM D2
func TestPrefixSumsTakeLogPMessagesOnAHypercube(t *testing.T) {
	scan := func(p, m float64) model.Cost { return combined(lg(p), m) }
	hold(t, []claim{{sched.Scan, "recursive-doubling", "hypercube", false, scan}})
	for _, p := range []int{2, 8, 64} {
		r := simulateOn(t, "hypercube", schedule(t, sched.ExScan, "recursive-doubling", p, 0), 7, func(c *sim.Config) { c.Model.Top = 0 })
		takes(t, fmt.Sprintf("exscan, p %d", p), r, moved(lg(float64(p)), 7))
	}
}

// CLAIM D3
func TestPersonalizedExchangeOnRingMeshAndCube(t *testing.T) {
	hold(t, []claim{
		{sched.AllToAll, "ring", "ring", false, func(p, m float64) model.Cost { return moved(p-1, m*p/2) }},
		{sched.AllToAll, "mesh", "torus", false, func(p, m float64) model.Cost { return moved(linesOf(p)-2, m*p/2) }},
		{sched.AllToAll, "ecube", "hypercube", false, func(p, m float64) model.Cost { return moved(p-1, m) }},
		{sched.AllToAll, "hypercube", "hypercube", false, func(p, m float64) model.Cost { return moved(lg(p), m*p/2) }},
	})
}

// CLAIM D4
func TestAShiftTakesTheShorterWayRoundARingAndOneMessageOnACube(t *testing.T) {
	for _, p := range []int{1, 2, 3, 5, 8, 16, 33, 64, 1024} {
		for q := range p {
			if q > 33 && (q%127 != 0 || testing.Short()) {
				continue
			}
			ring := simulateOn(t, "ring", schedule(t, sched.Shift, "ring", p, q), 7)
			takes(t, fmt.Sprintf("p %d by %d on a ring", p, q), ring, moved(float64(min(q, p-q)), 7))
			if p&(p-1) > 0 || q == 0 {
				continue
			}
			cube := simulateOn(t, "hypercube", schedule(t, sched.Shift, "direct", p, q), 7)
			takes(t, fmt.Sprintf("p %d by %d on a hypercube", p, q), cube, moved(1, 7))
			if ring.MaxLinkLoad > 1 || cube.MaxLinkLoad > 1 {
				t.Errorf("p %d by %d: links carry %d messages, and %d on a hypercube", p, q, ring.MaxLinkLoad, cube.MaxLinkLoad)
			}
		}
	}
}

// The text's procedure takes √p + 1 messages at most: along the rows, then a step
// of those columns that came round the end of a row, then along the columns. Here
// these columns go their step with the others, or against them if that is
// shorter, so no more than half a side is left each way.
//
// CLAIM D4
func TestAShiftOnAMeshTakesAtMostASideAndOneMessage(t *testing.T) {
	for _, side := range []int{2, 3, 4, 5, 8, 16, 32} {
		if side*side > largest() {
			continue
		}
		if most := longestShift(t, side, side); most != 2*(side/2) {
			t.Errorf("torus:%dx%d: %d messages one after another, want at most %d", side, side, most, 2*(side/2))
		}
	}
	for _, sides := range [][]int{{1, 7}, {7, 1}, {2, 3}, {3, 2}, {4, 6}, {5, 3}, {2, 2, 2}, {3, 4, 5}, {5, 1, 4}, {2, 3, 2, 3}} {
		half := 0
		for _, side := range sides {
			half += side / 2
		}
		if most := longestShift(t, sides...); most > half {
			t.Errorf("torus of %v: %d messages one after another, want at most %d", sides, most, half)
		}
	}
}

// longestShift returns how many messages the longest shift takes on a torus of
// these sides. It simulates shifts by all distances, or some of many.
func longestShift(t *testing.T, sides ...int) (most int) {
	t.Helper()
	dims, p := strings.ReplaceAll(strings.Trim(fmt.Sprint(sides), "[]"), " ", "x"), 1
	for _, side := range sides {
		p *= side
	}
	for q := range p {
		cost, err := algo.Price(sched.Shift, "mesh,dims="+dims, p, q, 0, 7)
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, int(cost.Startups))
		if q > 64 && q%7 != 0 {
			continue
		}
		r := simulateOn(t, "torus:"+dims, schedule(t, sched.Shift, "mesh,dims="+dims, p, q), 7)
		takes(t, fmt.Sprintf("by %d on %s", q, dims), r, moved(cost.Startups, 7))
		if r.MaxLinkLoad > 1 {
			t.Errorf("by %d on %s: a link is asked to carry %d messages", q, dims, r.MaxLinkLoad)
		}
	}
	return most
}

// Each of the bounds is the text's; algo's tests prove that no schedule beats
// them and that each is reached.
//
// CLAIM D5 S4
func TestTheLowerBoundsAreThoseOfTheTexts(t *testing.T) {
	const n = 720720
	for _, ranks := range []int{2, 3, 5, 8, 12, 1001} {
		p, latency := float64(ranks), float64(ceilLog(ranks))
		part := n * (p - 1) / p
		for c, want := range map[sched.Collective]model.Cost{
			sched.Bcast:         {Startups: latency, Words: n},
			sched.Reduce:        {Startups: latency, Words: n, Combines: part},
			sched.Scatter:       {Startups: latency, Words: part},
			sched.Gather:        {Startups: latency, Words: part},
			sched.AllGather:     {Startups: latency, Words: part},
			sched.ReduceScatter: {Startups: latency, Words: part, Combines: part},
			sched.AllReduce:     {Startups: latency, Words: 2 * part, Combines: part},
		} {
			for _, price := range prices {
				equal(t, fmt.Sprintf("%v, p %d, %+v", c, ranks, price), price.Time(algo.LowerBound(c, ranks, n)), price.Time(want))
			}
		}
	}
}
