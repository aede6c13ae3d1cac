package sim_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/sim"
)

// On an n×n mesh x[c] goes down column c in ⌈log n⌉ messages of a word, one after
// another, and all columns at once. Then the products go along the rows in as
// many, and each that comes is added: ⌈log n⌉ (2 (ts + tw) + top). No two
// messages share a link.
//
// CLAIM G5
func TestTheProductOfMatrixAndVectorTakesOneBroadcastAndOneReduction(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5, 8, 16, 32} {
		var parts []sim.Part
		for _, c := range []sched.Collective{sched.Bcast, sched.Reduce} {
			for i := range n {
				ranks := make([]int, n)
				for j := range ranks {
					if ranks[j] = i*n + j; c == sched.Bcast {
						ranks[j] = j*n + i
					}
				}
				parts = append(parts, sim.Part{Schedule: schedule(t, c, "binomial", n, 0), Ranks: ranks, Words: 1})
			}
		}
		for _, together := range []bool{false, true} {
			if together && 1<<floorLog(n) != n {
				continue // some lines broadcast on while others reduce, and all wait for both
			}
			r := playAll(t, fmt.Sprintf("mesh:%dx%d", n, n), n*n, parts, record, func(c *sim.Config) { c.Sync = together })
			steps := float64(ceilLog(n))
			takes(t, fmt.Sprintf("%d×%d", n, n), r, moved(steps, 1).Plus(combined(steps, 1)))
			if r.MaxLinkLoad > 1 || r.Messages != 2*n*(n-1) {
				t.Errorf("%d×%d: %d messages, %d at once on a link", n, n, r.Messages, r.MaxLinkLoad)
			}
			if n != 4 {
				continue
			}
			var heard []string // by rank 9, and of the reduction by ranks 8 to 11
			for _, m := range r.Log {
				if m.To == 9 || m.To/4 == 2 && m.From/4 == 2 {
					heard = append(heard, fmt.Sprintf("%d→%d", m.From, m.To))
				}
			}
			if want := []string{"1→9", "9→8", "11→10", "10→8"}; !slices.Equal(heard, want) {
				t.Errorf("rank 9 and its row: %v, want %v", heard, want)
			}
		}
	}
}
