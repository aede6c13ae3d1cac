package algo_test

import (
	"math/bits"
	"testing"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/sched"
)

// In every step each link of the hypercube carries at most one message in each
// direction, and there are as many steps as dimensions.
//
// SPEC I6 I7
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

// Piece j begins with dimension j.
//
// SPEC I7
func TestRotatedPiecesBeginWithDifferentDimensions(t *testing.T) {
	for _, test := range []struct {
		c    sched.Collective
		p    int
		want string
	}{
		{sched.Bcast, 4, "0→1[0..1] 0→2[1..2]; 0→1[1..2] 0→2[0..1] 1→3[0..1] 2→3[1..2]"},
		{sched.Reduce, 4, "1→0[1..2] 2→0[0..1] 3→1[0..1] 3→2[1..2]; 1→0[0..1] 2→0[1..2]"},
	} {
		s := newSchedule(t, test.c, "rotated", test.p, 0)
		if got := messagesAndBlocks(t, s); got != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", describe(s), got, test.want)
		}
	}
}

// On a hypercube with all ports, the words that binomial moves one after another
// along lg p dimensions go along all of them at once.
//
// SPEC I7
func TestRotatedMovesLgPTimesFasterThanBinomial(t *testing.T) {
	for d := 1; d <= 10; d++ {
		for _, c := range []sched.Collective{sched.Bcast, sched.Reduce} {
			binomial, err := algo.Price(c, "binomial", 1<<d, 0, 0, 1)
			if err != nil {
				t.Fatal(err)
			}
			rotated, err := algo.Price(c, "rotated", 1<<d, 0, 0, 1)
			if err != nil {
				t.Fatal(err)
			}
			if binomial.Words != float64(d)*rotated.Words || binomial.Startups != rotated.Startups {
				t.Errorf("%v, p %d: %+v, and binomial %+v", c, 1<<d, rotated, binomial)
			}
		}
	}
}
