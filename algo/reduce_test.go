package algo_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/sched"
)

func TestReductionsSendTheMessagesOfTheTexts(t *testing.T) {
	expectMessages(t, sched.Reduce, []messageCase{
		{"linear", 5, 2, "1→2; 0→2; 3→2; 4→2"},
		// CLAIM G4: the broadcast reversed.
		{"binomial", 8, 0, "1→0 3→2 5→4 7→6; 2→0 6→4; 4→0"},
		// CLAIM G12 G13: any root, any number of ranks.
		{"binomial", 8, 3, "0→1 2→3 4→5 6→7; 1→3 5→7; 7→3"},
		{"binomial", 1, 0, ""},
		{"binomial", 7, 0, "1→0 3→2 5→4; 2→0 6→4; 4→0"},
		// CLAIM G6: the mesh reversed.
		{"mesh", 16, 0, "1→0 3→2 5→4 7→6 9→8 11→10 13→12 15→14; 2→0 6→4 10→8 14→12; 4→0 12→8; 8→0"},
		// CLAIM T1: the front half receives from the back half.
		{"tree", 8, 0, "4→0 5→1 6→2 7→3; 2→0 3→1; 1→0"},
		// CLAIM T2: the one in the middle sits the step out.
		{"tree", 7, 0, "4→0 5→1 6→2; 2→0 3→1; 1→0"},
		{"tree", 5, 0, "3→0 4→1; 2→0; 1→0"},
		{"tree", 5, 3, "1→3 2→4; 0→3; 4→3"},
		{"knomial,k=3", 9, 4, "0→1 2→1 3→4 5→4 6→7 8→7; 1→4 7→4"},
		// In rank order, to the first rank, to the last, and to one in between.
		{"chain", 5, 0, "4→3; 3→2; 2→1; 1→0"},
		{"chain", 5, 4, "0→1; 1→2; 2→3; 3→4"},
		{"chain", 5, 2, "2→3; 3→4; 4→1; 1→0; 0→2"},
		{"binary-tree", 7, 0, "4→1 6→2; 3→1 5→2; 2→0; 1→0"},
		{"in-order-binary", 7, 3, "2→1 6→5; 0→1 4→5; 5→3; 1→3"},
		{"in-order-binary", 7, 0, "3→2 5→6; 1→2 6→4; 2→4; 4→0"},
		// CLAIM I2: reduce-scatter, then gather.
		{"reduce-scatter-gather", 4, 0, "0↔1 2↔3; 0↔2 1↔3; 2→0 3→1; 1→0"},
		{"reduce-scatter-gather", 4, 3, "0↔1 2↔3; 0↔2 1↔3; 0→2 1→3; 2→3"},
		{"reduce-scatter-gather", 5, 1, "0→1 3↔4; 1↔2; 1↔3 2↔4; 3→1 4→2; 2→1"},
	})
}

// CLAIM G4 G6
func TestReductionIsTheBroadcastReversed(t *testing.T) {
	for _, spec := range []string{"binomial", "mesh"} {
		for _, p := range []int{2, 4, 8, 16, 64} {
			for root := range p {
				bcast := messages(t, newSchedule(t, sched.Bcast, spec, p, root))
				reduce := messages(t, newSchedule(t, sched.Reduce, spec, p, root))
				if reduce != reversed(bcast) {
					t.Errorf("%s, p %d, root %d: %s is not %s reversed", spec, p, root, reduce, bcast)
				}
			}
		}
	}
}

// Each rank contributes its number. The tree leaves the sum on the root, the
// butterfly on every rank.
//
// CLAIM T1 T2 B1 B2
func TestTheGlobalSumIsThatOfTheTexts(t *testing.T) {
	for p, want := range map[int]int{1: 0, 2: 1, 3: 3, 5: 10, 7: 21, 8: 28, 16: 120, 20: 190, 32: 496, 35: 595} {
		for _, test := range []struct {
			c    sched.Collective
			spec string
		}{
			{sched.Reduce, "tree"}, {sched.Reduce, "binomial"}, {sched.Reduce, "linear"}, {sched.Reduce, "mesh"},
			{sched.AllReduce, "tree"}, {sched.AllReduce, "butterfly"}, {sched.AllReduce, "recursive-doubling"},
		} {
			ranks, err := runNaively(newSchedule(t, test.c, test.spec, p, 0), orders["first"])
			if err != nil {
				t.Fatalf("%v %s, p %d: %v", test.c, test.spec, p, err)
			}
			if test.c == sched.Reduce {
				ranks = ranks[:1]
			}
			for r, rank := range ranks {
				got := 0
				for _, contribution := range rank.memory[sched.Out][0].ranks {
					got += contribution
				}
				if got != want {
					t.Errorf("%v %s: rank %d of %d has the sum %d, want %d", test.c, test.spec, r, p, got, want)
				}
			}
		}
	}
}

// The front half of the active ranks receives, the back half sends, and an odd
// one in the middle waits: that is all of the tree.
//
// CLAIM T2
func TestTheTreeFollowsTheRuleOfHalves(t *testing.T) {
	for _, p := range sizes {
		var want []string
		for active := p; active > 1; {
			half, odd := active/2, active%2
			var ms []sched.Message
			for i := range half {
				ms = append(ms, sched.Message{From: i + half + odd, To: i})
			}
			want = append(want, renderStep(ms, func(sched.Message) string { return "" }))
			active = half + odd
		}
		s := newSchedule(t, sched.Reduce, "tree", p, 0)
		if got, want := messages(t, s), strings.Join(want, "; "); got != want {
			t.Errorf("%s: got %s, want %s", describe(s), got, want)
		}
	}
}

// The whole vector meets its halves, quarters, …, nearest partner first, and
// the pieces come home along the same partners.
//
// CLAIM I2 V3
func TestReduceScatterGatherHalvesTheVectorAndGathersIt(t *testing.T) {
	got := messagesAndBlocks(t, newSchedule(t, sched.Reduce, "reduce-scatter-gather", 4, 0))
	want := "0→1[2..4] 1→0[0..2] 2→3[2..4] 3→2[0..2]; " +
		"0→2[1..2] 1→3[3..4] 2→0[0..1] 3→1[2..3]; " +
		"2→0[1..2] 3→1[3..4]; 1→0[2..4]"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for d := 1; d < 8; d++ {
		p := 1 << d
		s := newSchedule(t, sched.Reduce, "reduce-scatter-gather", p, p-1)
		c := tally(t, s)
		if c.steps != 2*d || c.combined != p-1 {
			t.Errorf("%s: %d steps, %d blocks of %d combined; want %d, %d", describe(s), c.steps, c.combined, p, 2*d, p-1)
		}
	}
}

// Elsewhere ranks that hold a sum hold that of neighbors, so any operator will
// do.
func TestTheseAlgorithmsNeedOperatorsThatCommute(t *testing.T) {
	var restricted []string
	for _, a := range algo.Catalog() {
		if newSchedule(t, a.Collective, a.Name, 4, 0).Commutative {
			restricted = append(restricted, fmt.Sprintf("%v %s", a.Collective, a.Name))
		}
	}
	want := []string{
		"allreduce circulant",
		"allreduce reduce-scatter-allgather",
		"allreduce ring",
		"allreduce swing",
		"allreduce tree",
		"reduce binary-tree",
		"reduce circulant",
		"reduce rotated",
		"reduce tree",
		"reduce-scatter circulant",
		"reduce-scatter mesh",
		"reduce-scatter recursive-halving",
		"reduce-scatter ring",
		"reduce-scatter rotated",
	}
	slices.Sort(restricted)
	if !slices.Equal(restricted, want) {
		t.Errorf("got %q, want %q", restricted, want)
	}
}

// Where intervals are cut does not depend on the root, and neither do the bits.
func TestAReductionYieldsTheSameBitsForEveryRoot(t *testing.T) {
	for _, spec := range []string{"binomial", "mesh", "reduce-scatter-gather"} {
		for _, p := range []int{2, 3, 5, 6, 7, 12, 16} {
			var first string
			for root := range p {
				ranks, err := runNaively(newSchedule(t, sched.Reduce, spec, p, root), orders["first"])
				if err != nil {
					t.Fatal(err)
				}
				made := ranks[root].memory[sched.Out][0].made
				if root == 0 {
					first = made
				}
				if made != first {
					t.Errorf("%s, p %d, root %d: made as %s, with root 0 as %s", spec, p, root, made, first)
				}
			}
		}
	}
}
