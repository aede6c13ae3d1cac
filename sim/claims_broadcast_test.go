package sim_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/sim"
)

// CLAIM G1 G2 G6 G8 G14
func TestABroadcastOrReductionTakesLogPMessagesOneAfterAnother(t *testing.T) {
	const everywhere = "linear ring mesh torus hypercube tree"
	oneByOne := func(p, m float64) model.Cost { return moved(p-1, m) }
	doubling := func(p, m float64) model.Cost { return moved(lg(p), m) }
	halving := func(p, m float64) model.Cost { return combined(lg(p), m) }
	hold(t, []claim{
		{sched.Bcast, "linear", everywhere, false, oneByOne},
		{sched.Bcast, "binomial", everywhere, false, doubling},
		{sched.Bcast, "mesh", "mesh torus", false, doubling},
		{sched.Reduce, "binomial", everywhere, false, halving},
		{sched.Reduce, "mesh", "mesh torus", false, halving},
	})
}

// CLAIM G1
func TestOneAfterAnotherTheSourceIsTheBottleneck(t *testing.T) {
	for _, p := range []int{2, 5, 8, 64} {
		r := simulateOn(t, "linear", schedule(t, sched.Bcast, "linear", p, 0), 7, record)
		for i := 1; i < len(r.Log); i++ {
			if m := r.Log[i]; m.From != 0 || m.Start < r.Log[i-1].End {
				t.Errorf("p %d: %d→%d starts at %v, and the message before it ends at %v", p, m.From, m.To, m.Start, r.Log[i-1].End)
			}
		}
		equal(t, "the source sends all the time", r.PerRank[0].Sending, r.Time)
	}
}

// CLAIM G2 G4 G9 G10
func TestTheSameMessagesSuitTheArrayTheMeshTheCubeAndTheTree(t *testing.T) {
	const want = "0→4; 0→2 4→6; 0→1 2→3 4→5 6→7"
	for _, on := range []string{"linear", "ring", "mesh", "mesh:2x2x2", "hypercube", "tree"} {
		bcast := simulateOn(t, on, schedule(t, sched.Bcast, "binomial", 8, 0), 1, record)
		reduce := simulateOn(t, on, schedule(t, sched.Reduce, "binomial", 8, 0), 1, record)
		if said(bcast) != want || reversed(reduce) != want {
			t.Errorf("%s: %s, and reversed %s, want %s", on, said(bcast), reversed(reduce), want)
		}
		if bcast.MaxLinkLoad != 1 || reduce.MaxLinkLoad != 1 {
			t.Errorf("%s: links carry %d messages in a step, and %d", on, bcast.MaxLinkLoad, reduce.MaxLinkLoad)
		}
	}
	for p := 1; p <= largest(); p *= 2 {
		line := simulateOn(t, "linear", schedule(t, sched.Bcast, "binomial", p, 0), 1, record)
		mesh := simulateOn(t, "mesh", schedule(t, sched.Bcast, "mesh", p, 0), 1, record)
		if said(line) != said(mesh) {
			t.Errorf("p %d: %s on the array, %s on the mesh", p, said(line), said(mesh))
		}
	}
}

// On an array, all 2^(k−1) messages of step k go from the left of the same link
// to its right. If they wait for each other they take 2^(k−1)(ts + tw m), so all
// steps together take (p − 1)(ts + tw m), no less than one source alone. If they
// share the link the start-ups overlap: log p ts + (p − 1) tw m. The tree fares
// as the array does, for the link of its root; a mesh of √p×√p is two arrays of
// √p, one after the other.
//
// CLAIM G3
func TestNearestFirstCongestsTheMiddleLinks(t *testing.T) {
	const ascending = "binomial,order=ascending"
	r := simulateOn(t, "linear", schedule(t, sched.Bcast, ascending, 8, 0), 1, record)
	if got, want := said(r), "0→1; 0→2 1→3; 0→4 1→5 2→6 3→7"; got != want {
		t.Errorf("messages %s, want %s", got, want)
	}
	for step, want := range []string{"", "1→2 2", "1→2 2, 2→3 3, 3→4 4, 4→5 3, 5→6 2"} {
		if got := congested(r, step); got != want {
			t.Errorf("step %d: congested %s, want %s", step+1, got, want)
		}
	}
	for p := 2; p <= largest(); p *= 2 {
		s := schedule(t, sched.Bcast, ascending, p, 0)
		for _, on := range []string{"linear", "ring", "tree"} {
			for _, price := range prices {
				what := fmt.Sprintf("p %d on %s, %+v", p, on, price)
				at := func(c *sim.Config) { c.Model = price }
				r := simulateOn(t, on, s, 7, at)
				takes(t, what, r, moved(float64(p-1), 7))
				if r.MaxLinkLoad != p/2 {
					t.Errorf("%s: a link is asked to carry %d messages, want %d", what, r.MaxLinkLoad, p/2)
				}
				if p <= 64 {
					shared := simulateOn(t, on, s, 7, at, func(c *sim.Config) { c.Share = true })
					takes(t, what+", shared", shared, model.Cost{Startups: lg(float64(p)), Words: 7 * float64(p-1)})
				}
			}
		}
		rows, columns := sides(p)
		takes(t, fmt.Sprintf("p %d on the mesh", p), simulateOn(t, "mesh", s, 7), moved(float64(rows+columns-2), 7))
	}
}

// CLAIM G4
func TestAReductionIsTheBroadcastWithAllArrowsTurnedRound(t *testing.T) {
	for _, p := range []int{1, 2, 8, 32} {
		for root := range p {
			bcast := simulateOn(t, "ring", schedule(t, sched.Bcast, "binomial", p, root), 5, record)
			reduce := simulateOn(t, "ring", schedule(t, sched.Reduce, "binomial", p, root), 5, record, func(c *sim.Config) { c.Model.Top = 0 })
			if reversed(reduce) != said(bcast) || reduce.Time != bcast.Time {
				t.Errorf("p %d, root %d: %s in %v, and the broadcast %s in %v", p, root, said(reduce), reduce.Time, said(bcast), bcast.Time)
			}
		}
	}
}

// A line of d ranks takes ⌈log d⌉ steps, so a mesh takes the sum of these, one
// dimension after the other, whatever its sizes are and wherever the root is.
//
// CLAIM G6
func TestAMeshBroadcastsAlongOneDimensionAfterAnother(t *testing.T) {
	r := simulateOn(t, "mesh:4x4", schedule(t, sched.Bcast, "mesh,dims=4x4", 16, 0), 1, record)
	if got, want := said(r), "0→8; 0→4 8→12; 0→2 4→6 8→10 12→14; 0→1 2→3 4→5 6→7 8→9 10→11 12→13 14→15"; got != want {
		t.Errorf("messages %s, want %s", got, want)
	}
	for _, dims := range [][]int{{4, 4}, {32, 32}, {3, 5}, {7, 6}, {4, 4, 4}, {8, 8, 8}, {3, 4, 5}, {10, 10, 10}} {
		p, steps, sizes := 1, 0, ""
		for _, d := range dims {
			p *= d
			steps += ceilLog(d)
			sizes += fmt.Sprintf("x%d", d)
		}
		for _, root := range []int{0, 1, p / 2, p - 1} {
			what := fmt.Sprintf("mesh of %s from %d", sizes[1:], root)
			bcast := simulateOn(t, "mesh:"+sizes[1:], schedule(t, sched.Bcast, "mesh,dims="+sizes[1:], p, root), 5, record)
			reduce := simulateOn(t, "mesh:"+sizes[1:], schedule(t, sched.Reduce, "mesh,dims="+sizes[1:], p, root), 5, record)
			takes(t, what, bcast, moved(float64(steps), 5))
			takes(t, what+", reduction", reduce, combined(float64(steps), 5))
			if bcast.MaxLinkLoad != 1 || reduce.MaxLinkLoad != 1 {
				t.Errorf("%s: links are congested", what)
			}
			if 1<<steps != p { // lines end their phases at different times
				continue
			}
			if reversed(reduce) != said(bcast) {
				t.Errorf("%s: the reduction is not the broadcast reversed", what)
			}
			for _, m := range bcast.Log {
				if got, want := dimension(dims, m.From, m.To), phase(dims, m.Step); got != want {
					t.Errorf("%s: step %d has %d→%d, want one along dimension %d", what, m.Step+1, m.From, m.To, want)
				}
			}
		}
	}
}

// phase returns the dimension that a step belongs to.
func phase(dims []int, step int) int {
	for i, d := range dims {
		if step -= ceilLog(d); step < 0 {
			return i
		}
	}
	return -1
}

// dimension returns the only one in which two ranks of a mesh differ, or -1.
func dimension(dims []int, a, b int) int {
	found := -1
	for i, d := range slices.Backward(dims) {
		if a%d != b%d {
			if found >= 0 {
				return -1
			}
			found = i
		}
		a, b = a/d, b/d
	}
	return found
}

// acrossDimensions broadcasts from rank 0 of a hypercube, dimension by
// dimension, in any order: whoever has the vector sends it across.
func acrossDimensions(order []int) *sched.Schedule {
	all := sched.Range{Hi: 1}
	return &sched.Schedule{
		Collective: sched.Bcast, Algorithm: "across", P: 1 << len(order), Blocks: 1,
		Make: func(_ *sched.Builder, rank int) sched.Program {
			var b sched.Builder
			if rank == 0 {
				b.Copy(sched.In, all, sched.Out, 0, sched.Replace)
			}
			has := 0 // the ranks that have it are those without other bits than these
			for _, i := range order {
				peer := rank ^ 1<<i
				switch {
				case rank&^has == 0:
					b.Send(sched.Out, all, peer)
				case peer&^has == 0:
					b.Recv(peer, sched.Out, all, sched.Replace)
				}
				b.EndStep()
				has |= 1 << i
			}
			return b.Program()
		},
	}
}

// On an array, only the farthest distance first, and then the next, is free of
// congestion: if a dimension comes before a higher one, there are two ranks
// closer to each other than the next messages go.
//
// CLAIM G7
func TestAHypercubeMindsNoOrderOfDimensionsAndAnArrayAllButOne(t *testing.T) {
	var orders [][]int
	permute([]int{0, 1, 2}, func(order []int) { orders = append(orders, slices.Clone(order)) })
	random := rand.New(rand.NewPCG(7, 7))
	for d := 1; d <= 10; d++ {
		for range 8 {
			orders = append(orders, random.Perm(d))
		}
		falling := random.Perm(d)
		slices.Sort(falling)
		slices.Reverse(falling)
		orders = append(orders, falling)
	}
	for _, order := range orders {
		s := acrossDimensions(order)
		if err := s.Check(); err != nil {
			t.Fatalf("order %v: %v", order, err)
		}
		cube, array := simulateOn(t, "hypercube", s, 7), simulateOn(t, "linear", s, 7)
		takes(t, fmt.Sprintf("order %v", order), cube, moved(float64(len(order)), 7))
		if cube.MaxLinkLoad != 1 {
			t.Errorf("order %v: a link of the hypercube is asked to carry %d messages in a step", order, cube.MaxLinkLoad)
		}
		falling := slices.IsSortedFunc(order, func(a, b int) int { return b - a })
		if free := array.MaxLinkLoad == 1; free != falling {
			t.Errorf("order %v: free of congestion on the array: %v", order, free)
		}
	}
}

// permute calls f with every order of a list.
func permute(list []int, f func([]int)) {
	var place func(i int)
	place = func(i int) {
		if i == len(list) {
			f(list)
		}
		for j := i; j < len(list); j++ {
			list[i], list[j] = list[j], list[i]
			place(i + 1)
			list[i], list[j] = list[j], list[i]
		}
	}
	place(0)
}

// In step k messages climb log p − k + 1 links and descend as many, over one
// switch less. The formula leaves hops out; with them, all steps take
// log p (ts + tw m) + log p (log p + 1) th.
//
// CLAIM G8
func TestNoLinkOfATreeCarriesTwoMessagesThoughPathsDiffer(t *testing.T) {
	for d := 1; d <= 10; d++ {
		p := 1 << d
		r := simulateOn(t, "tree", schedule(t, sched.Bcast, "binomial", p, 0), 7, record, func(c *sim.Config) { c.Model.Th = 3 })
		for _, m := range r.Log {
			if want := 2 * (d - m.Step); m.Hops != want {
				t.Errorf("p %d, step %d: %d→%d goes over %d links, want %d", p, m.Step+1, m.From, m.To, m.Hops, want)
			}
		}
		if r.MaxLinkLoad != 1 {
			t.Errorf("p %d: a link is asked to carry %d messages in a step", p, r.MaxLinkLoad)
		}
		want := moved(float64(d), 7)
		want.Hops = float64(d * (d + 1))
		takes(t, fmt.Sprintf("p %d", p), r, want)
	}
}

// XOR with the source makes any node the source, on a hypercube.
//
// CLAIM G11 G12
func TestAnySourceIsNodeZeroWithOtherLabels(t *testing.T) {
	r := simulateOn(t, "hypercube", schedule(t, sched.Bcast, "binomial", 8, 3), 1, record)
	if got, want := said(r), "3→7; 3→1 7→5; 1→0 3→2 5→4 7→6"; got != want {
		t.Errorf("from 3: %s, want %s", got, want)
	}
	for _, p := range []int{2, 8, 64} {
		for _, c := range []sched.Collective{sched.Bcast, sched.Reduce} {
			from := simulateOn(t, "hypercube", schedule(t, c, "binomial", p, 0), 7, record)
			for root := range p {
				r := simulateOn(t, "hypercube", schedule(t, c, "binomial", p, root), 7, record)
				for i := range r.Log {
					r.Log[i].From ^= root
					r.Log[i].To ^= root
				}
				if said(r) != said(from) || r.Time != from.Time || r.MaxLinkLoad != 1 {
					t.Errorf("%v, p %d, root %d: by labels %s in %v, want %s in %v", c, p, root, said(r), r.Time, said(from), from.Time)
				}
			}
		}
	}
}

// The log of the formula becomes ⌈log p⌉, and no link is congested all the same.
//
// CLAIM G13
func TestAnyNumberOfRanksAndAnyRootTakeTheLogRoundedUp(t *testing.T) {
	for p := range 1001 {
		if p == 0 || p > 33 && p != 100 && p != 1000 {
			continue
		}
		for root := range p {
			if p > 33 && root%(p/4) != 0 {
				continue
			}
			for _, on := range []string{"linear", "ring"} {
				what := fmt.Sprintf("p %d, root %d on %s", p, root, on)
				bcast := simulateOn(t, on, schedule(t, sched.Bcast, "binomial", p, root), 5)
				reduce := simulateOn(t, on, schedule(t, sched.Reduce, "binomial", p, root), 5)
				takes(t, what, bcast, moved(float64(ceilLog(p)), 5))
				takes(t, what+", reduction", reduce, combined(float64(ceilLog(p)), 5))
				if bcast.MaxLinkLoad > 1 || reduce.MaxLinkLoad > 1 {
					t.Errorf("%s: links are congested", what)
				}
			}
		}
	}
}

// Messages of log p steps go over p − 1 links on an array, one after another, and
// over log p on a hypercube. The formulas count none.
//
// CLAIM G14
func TestHopsAddTheLengthOfTheWay(t *testing.T) {
	for d := range 11 {
		p := 1 << d
		rows, columns := sides(p)
		for on, hops := range map[string]int{"linear": p - 1, "ring": p - 1, "mesh": rows + columns - 2, "hypercube": d, "tree": d * (d + 1)} {
			r := simulateOn(t, on, schedule(t, sched.Bcast, "binomial", p, 0), 7, func(c *sim.Config) { c.Model.Th = 3 })
			want := moved(float64(d), 7)
			want.Hops = float64(hops)
			takes(t, fmt.Sprintf("p %d on %s", p, on), r, want)
		}
	}
}
