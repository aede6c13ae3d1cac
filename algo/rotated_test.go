package algo_test

import (
	"math"
	"math/bits"
	"testing"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/sched"
)

// In every step each link of the hypercube carries at most one message in each
// direction, and there are as many steps as dimensions.
//
// CLAIM I6 I7
func TestRotatedUsesEachLinkAtMostOnceInAStep(t *testing.T) {
	for _, a := range algo.Catalog() {
		if a.Name != "rotated" {
			continue
		}
		for d := range 8 {
			p := 1 << d
			for _, root := range roots(a.Collective, p) {
				s := newSchedule(t, a.Collective, a.Name, p, root)
				steps := moments(t, s)
				if got := countSteps(steps); got != d {
					t.Errorf("%s: %d steps with messages, want %d", describe(s), got, d)
				}
				for i, step := range steps {
					carried := make(map[[2]int]bool)
					for _, m := range step.messages {
						link := [2]int{m.From, m.To}
						if bits.OnesCount(uint(m.From^m.To)) != 1 {
							t.Errorf("%s, step %d: %d→%d is no link", describe(s), i+1, m.From, m.To)
						}
						if carried[link] {
							t.Errorf("%s, step %d: %d→%d carries two messages", describe(s), i+1, m.From, m.To)
						}
						carried[link] = true
					}
				}
			}
		}
	}
}

func countSteps(steps []moment) (n int) {
	for _, step := range steps {
		if len(step.messages) > 0 {
			n++
		}
	}
	return n
}

// Piece j begins with dimension j. Where each rank has a part, a last step
// without messages copies the pieces to their positions.
//
// CLAIM I7
func TestRotatedPiecesBeginWithDifferentDimensions(t *testing.T) {
	for _, test := range []struct {
		c    sched.Collective
		p    int
		want string
	}{
		{sched.Bcast, 4, "0→1[0..1] 0→2[1..2]; 0→1[1..2] 0→2[0..1] 1→3[0..1] 2→3[1..2]"},
		{sched.Scatter, 4, "0→1[2..4] 0→2[6..8]; 0→1[5..6] 0→2[1..2] 1→3[3..4] 2→3[7..8]; "},
		{sched.AllGather, 4, "0→1[0..1] 0→2[4..5] 1→0[1..2] 1→3[6..7] 2→0[5..6] 2→3[2..3] 3→1[7..8] 3→2[3..4]; " +
			"0→1[4..6] 0→2[0..2] 1→0[6..8] 1→3[0..2] 2→0[2..4] 2→3[4..6] 3→1[2..4] 3→2[6..8]; "},
		{sched.Reduce, 4, "1→0[1..2] 2→0[0..1] 3→1[0..1] 3→2[1..2]; 1→0[0..1] 2→0[1..2]"},
	} {
		s := newSchedule(t, test.c, "rotated", test.p, 0)
		if got := messagesAndBlocks(t, s); got != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", describe(s), got, test.want)
		}
	}
}

// What one port moves along lg p dimensions one after another goes along all of
// them at once, in as many steps.
//
// CLAIM I7
func TestRotatedMovesLgPTimesFasterThanOnePort(t *testing.T) {
	onePort := map[sched.Collective]string{
		sched.Bcast: "binomial", sched.Reduce: "binomial", sched.Scatter: "binomial", sched.Gather: "binomial",
		sched.AllGather: "recursive-doubling", sched.ReduceScatter: "recursive-halving", sched.AllToAll: "hypercube",
	}
	for d := 1; d <= 10; d++ {
		for c, name := range onePort {
			one, err := algo.Price(c, name, 1<<d, 0, 0, 1)
			if err != nil {
				t.Fatal(err)
			}
			all, err := algo.Price(c, "rotated", 1<<d, 0, 0, 1)
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(all.Words*float64(d)-one.Words) > 1e-9*one.Words || all.Startups != one.Startups || all.Combines != one.Combines {
				t.Errorf("%v, p %d: %+v, and %s %+v", c, 1<<d, all, name, one)
			}
		}
	}
}
