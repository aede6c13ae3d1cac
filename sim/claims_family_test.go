package sim_test

import (
	"fmt"
	"testing"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/sim"
)

// On a mesh, √p − 1 messages of m words go round the rows and as many of √p m
// words round the columns.
//
// SPEC D1
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

// SPEC D1 D3
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
			r := play(t, c.on, schedule(t, c.c, c.spec, int(p), 0), 7)
			takes(t, fmt.Sprintf("%v %s on %s, p %v", c.c, c.spec, c.on, p), r, c.want)
			if r.MaxLinkLoad > 1 {
				t.Errorf("%v %s on %s, p %v: links are congested", c.c, c.spec, c.on, p)
			}
		}
	}
}

// SPEC D2
func TestPrefixSumsTakeLogPMessagesOnAHypercube(t *testing.T) {
	scan := func(p, m float64) model.Cost { return combined(lg(p), m) }
	hold(t, []claim{{sched.Scan, "recursive-doubling", "hypercube", false, scan}})
	for _, p := range []int{2, 8, 64} {
		r := play(t, "hypercube", schedule(t, sched.ExScan, "recursive-doubling", p, 0), 7, func(c *sim.Config) { c.Model.Top = 0 })
		takes(t, fmt.Sprintf("exscan, p %d", p), r, moved(lg(float64(p)), 7))
	}
}

// SPEC D3
func TestPersonalizedExchangeOnRingMeshAndCube(t *testing.T) {
	hold(t, []claim{
		{sched.AllToAll, "ring", "ring", false, func(p, m float64) model.Cost { return moved(p-1, m*p/2) }},
		{sched.AllToAll, "mesh", "torus", false, func(p, m float64) model.Cost { return moved(linesOf(p)-2, m*p/2) }},
		{sched.AllToAll, "ecube", "hypercube", false, func(p, m float64) model.Cost { return moved(p-1, m) }},
		{sched.AllToAll, "hypercube", "hypercube", false, func(p, m float64) model.Cost { return moved(lg(p), m*p/2) }},
	})
}

// SPEC D4
func TestAShiftTakesTheShorterWayRoundARingAndOneMessageOnACube(t *testing.T) {
	for _, p := range []int{1, 2, 3, 5, 8, 16, 33, 64, 1024} {
		for q := range p {
			if q > 33 && (q%127 != 0 || testing.Short()) {
				continue
			}
			ring := play(t, "ring", schedule(t, sched.Shift, "ring", p, q), 7)
			takes(t, fmt.Sprintf("p %d by %d on a ring", p, q), ring, moved(float64(min(q, p-q)), 7))
			if p&(p-1) > 0 || q == 0 {
				continue
			}
			cube := play(t, "hypercube", schedule(t, sched.Shift, "direct", p, q), 7)
			takes(t, fmt.Sprintf("p %d by %d on a hypercube", p, q), cube, moved(1, 7))
			if ring.MaxLinkLoad > 1 || cube.MaxLinkLoad > 1 {
				t.Errorf("p %d by %d: links carry %d messages, and %d on a hypercube", p, q, ring.MaxLinkLoad, cube.MaxLinkLoad)
			}
		}
	}
}

// Along the rows by q mod √p, then those columns up by one whose ranks came round
// the end of a row, then along the columns by the rows in q; each the shorter way
// round. No rows more than √p/2 away, no columns, and one more: √p + 1 messages.
//
// SPEC D4
func TestAShiftOnAMeshTakesAtMostASideAndOneMessage(t *testing.T) {
	for _, side := range []int{2, 3, 4, 5, 8, 16, 32} {
		p, most := side*side, 0
		if p > largest() {
			continue
		}
		on := fmt.Sprintf("torus:%dx%d", side, side)
		for q := 1; q < p; q++ {
			if side > 8 && q%7 != 0 {
				continue
			}
			s, steps := shiftOnMesh(side, q)
			if side <= 5 {
				if err := s.Check(); err != nil {
					t.Fatalf("by %d on %s: %v", q, on, err)
				}
			}
			r := play(t, on, s, 7)
			takes(t, fmt.Sprintf("by %d on %s", q, on), r, moved(float64(steps), 7))
			if r.MaxLinkLoad > 1 {
				t.Errorf("by %d on %s: a link is asked to carry %d messages", q, on, r.MaxLinkLoad)
			}
			most = max(most, steps)
		}
		if most > side+1 || side%2 == 0 && side > 2 && side <= 8 && most != side+1 {
			t.Errorf("%s: %d messages one after another, want at most %d", on, most, side+1)
		}
	}
}

// shiftOnMesh makes the schedule of a shift by q, and says how many steps it has.
func shiftOnMesh(side, q int) (s *sched.Schedule, steps int) {
	p := side * side
	across, down := q%side, q/side
	carry := 1 // for who comes round the end of a row
	if 2*across > side {
		across, down, carry = across-side, down+1, -1
	}
	if 2*down > side {
		down -= side
	}
	// Each step moves what every rank holds by some rows and columns, or not.
	type move func(rank int) (rows, columns int)
	var moves []move
	for range max(across, -across) {
		moves = append(moves, func(int) (int, int) { return 0, across / max(across, -across) })
	}
	if across != 0 {
		moves = append(moves, func(rank int) (int, int) {
			if from := rank%side - across; from < 0 || from >= side {
				return carry, 0
			}
			return 0, 0
		})
	}
	for range max(down, -down) {
		moves = append(moves, func(int) (int, int) { return down / max(down, -down), 0 })
	}
	all := sched.Range{Hi: 1}
	at := func(rank, rows, columns int) int {
		return (rank/side+rows+side)%side*side + (rank%side+columns+side)%side
	}
	return &sched.Schedule{
		Collective: sched.Shift, Algorithm: "on a mesh", P: p, Root: q, Blocks: 1, Scratch: 1,
		Make: func(rank int) sched.Program {
			var b sched.Builder
			held := sched.In
			for _, m := range moves {
				rows, columns := m(rank)
				if rows == 0 && columns == 0 {
					continue
				}
				into := sched.Out
				if held == sched.Out {
					into = sched.Scratch
				}
				b.Send(held, all, at(rank, rows, columns))
				b.Recv(at(rank, -rows, -columns), into, all, sched.Replace)
				b.EndStep()
				held = into
			}
			b.Copy(held, all, sched.Out, 0, sched.Replace)
			return b.Program()
		},
	}, len(moves)
}

// Each of the bounds is the text's; algo's tests prove that no schedule beats
// them and that each is reached.
//
// SPEC D5 S4
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
