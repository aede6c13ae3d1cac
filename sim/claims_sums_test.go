package sim_test

import (
	"fmt"
	"testing"

	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// CLAIM T1 T2
func TestATreeSumTakesTheLogRoundedUp(t *testing.T) {
	hold(t, []claim{{sched.Reduce, "tree", "hypercube full", false, func(p, m float64) model.Cost { return combined(lg(p), m) }}})
	for p := 1; p <= 40; p++ {
		r := simulateOn(t, "full", schedule(t, sched.Reduce, "tree", p, 0), 7)
		takes(t, fmt.Sprintf("p %d", p), r, combined(float64(ceilLog(p)), 7))
		if r.Messages != p-1 {
			t.Errorf("p %d: %d messages", p, r.Messages)
		}
	}
	for p, want := range map[int]string{
		5: "3→0 4→1; 2→0; 1→0",
		7: "4→0 5→1 6→2; 2→0 3→1; 1→0",
		8: "4→0 5→1 6→2 7→3; 2→0 3→1; 1→0",
	} {
		if got := said(simulateOn(t, "full", schedule(t, sched.Reduce, "tree", p, 0), 1, record)); got != want {
			t.Errorf("p %d: %s, want %s", p, got, want)
		}
	}
}

// In its first step p/2 messages want the link in the middle of an array, in the
// next half as many: together they take longer than their formula says, though
// later steps begin on links that are free again.
//
// CLAIM T1
func TestATreeSumCongestsAnArray(t *testing.T) {
	for p := 4; p <= largest(); p *= 2 {
		r := simulateOn(t, "linear", schedule(t, sched.Reduce, "tree", p, 0), 7)
		if whole := r.Config.Model.Time(combined(lg(float64(p)), 7)); r.MaxLinkLoad != p/2 || r.Time < 1.3*whole {
			t.Errorf("p %d: a link is asked to carry %d messages; time %v, formula %v", p, r.MaxLinkLoad, r.Time, whole)
		}
	}
}

// CLAIM B1
func TestAButterflyTakesAnExchangePerDimension(t *testing.T) {
	hold(t, []claim{{sched.AllReduce, "butterfly", "hypercube full", false, func(p, m float64) model.Cost { return combined(lg(p), m) }}})
}

// CLAIM B2
func TestAButterflyServesThoseWithoutAPartnerAfterwards(t *testing.T) {
	for p, want := range map[int]string{
		5: "0→1 1→0 2→3 3→2; 0→2 1→3 2→0 3→1; 0→4 4→0; 0→1 0→2 0→3",
		6: "0→1 1→0 2→3 3→2 4→5 5→4; 0→2 1→3 2→0 3→1; 0→4 1→5 4→0 5→1; 0→2 0→3",
		// 4→5 comes before 0↔4, which comes before 0→3.
		7: "0→1 1→0 2→3 3→2 4→5 5→4; 0→2 1→3 2→0 3→1 4→6 6→4; 2→6 4→5 6→2; 0→4 1→5 4→0 5→1; 0→3",
	} {
		if got := said(simulateOn(t, "full", schedule(t, sched.AllReduce, "butterfly", p, 0), 1, record)); got != want {
			t.Errorf("p %d: %s, want %s", p, got, want)
		}
	}
}

// With one rank more than 2^k, rank 0 has k + 1 exchanges and then p − 2 messages
// to send, one after another. A fold needs two messages more than ⌊log p⌋.
//
// CLAIM B3
func TestOneRankTooManyMakesTheButterflySlow(t *testing.T) {
	for k := 1; k <= 10; k++ {
		p := 1<<k + 1
		exchanges, extra := float64(k+1), float64(p-2)
		butterfly := simulateOn(t, "full", schedule(t, sched.AllReduce, "butterfly", p, 0), 7)
		takes(t, fmt.Sprintf("butterfly, p %d", p), butterfly, combined(exchanges, 7).Plus(moved(extra, 7)))
		if got := butterfly.PerRank[0].Sent; got != k+1+p-2 {
			t.Errorf("p %d: rank 0 sends %d messages", p, got)
		}
		folded := simulateOn(t, "full", schedule(t, sched.AllReduce, "recursive-doubling", p, 0), 7)
		takes(t, fmt.Sprintf("recursive-doubling, p %d", p), folded, combined(float64(k+1), 7).Plus(moved(1, 7)))
	}
	for p := 2; p <= 130; p++ {
		r := simulateOn(t, "full", schedule(t, sched.AllReduce, "recursive-doubling", p, 0), 7)
		want := floorLog(p) + 2
		if p&(p-1) == 0 {
			want = floorLog(p)
		}
		if r.Steps != want {
			t.Errorf("recursive-doubling, p %d: %d steps, want %d", p, r.Steps, want)
		}
	}
}

// The simulator buffers nothing: a message starts when both its ends have come
// to it. Here one rank, each in its turn, comes late, since it has something to
// combine first.
//
// CLAIM B4
func TestExchangesEndWhicheverSideComesFirst(t *testing.T) {
	first := sched.Step{Copies: []sched.Copy{{Src: sched.In, Blocks: sched.Range{Hi: 1}, Dst: sched.Out, How: sched.Left}}}
	for _, p := range []int{2, 5, 7, 8, 16} {
		for _, spec := range []string{"butterfly", "recursive-doubling", "recursive-halving"} {
			s := schedule(t, sched.AllReduce, spec, p, 0)
			in := simulateOn(t, "full", s, 16)
			for late := range p {
				delayed := *s
				delayed.Make = func(_ *sched.Builder, rank int) sched.Program {
					if rank == late {
						return append(sched.Program{first}, s.Program(rank)...)
					}
					return s.Program(rank)
				}
				r := simulateOn(t, "full", &delayed, 16)
				if r.Messages != in.Messages || r.Time < in.Time {
					t.Errorf("%s, p %d, rank %d late: %d messages in %v, and without delay %d in %v", spec, p, late, r.Messages, r.Time, in.Messages, in.Time)
				}
			}
		}
	}
}
