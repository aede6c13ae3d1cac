package algo_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/sched"
)

// expectMessages compares the messages of schedules with those of the texts.
func expectMessages(t *testing.T, c sched.Collective, cases []messageCase) {
	t.Helper()
	for _, test := range cases {
		t.Run(fmt.Sprintf("%s/p=%d/root=%d", test.spec, test.p, test.root), func(t *testing.T) {
			if got := messages(t, newSchedule(t, c, test.spec, test.p, test.root)); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

type messageCase struct {
	spec    string
	p, root int
	want    string
}

func TestBroadcastsSendTheMessagesOfTheTexts(t *testing.T) {
	expectMessages(t, sched.Bcast, []messageCase{
		// CLAIM G1: the source sends p−1 messages one after another.
		{"linear", 2, 0, "0→1"},
		{"linear", 8, 0, "0→1; 0→2; 0→3; 0→4; 0→5; 0→6; 0→7"},
		{"linear", 5, 2, "2→0; 2→1; 2→3; 2→4"},
		// CLAIM G2: farthest first.
		{"binomial", 8, 0, "0→4; 0→2 4→6; 0→1 2→3 4→5 6→7"},
		// CLAIM G3: nearest first.
		{"binomial,order=ascending", 8, 0, "0→1; 0→2 1→3; 0→4 1→5 2→6 3→7"},
		// CLAIM G11: any source, relabelled by XOR.
		{"binomial", 8, 3, "3→7; 3→1 7→5; 1→0 3→2 5→4 7→6"},
		{"binomial,order=ascending", 8, 3, "3→2; 2→0 3→1; 0→4 1→5 2→6 3→7"},
		// CLAIM G13: any number of ranks, any source.
		{"binomial", 1, 0, ""},
		{"binomial", 2, 1, "1→0"},
		{"binomial", 3, 0, "0→2; 0→1"},
		{"binomial", 3, 1, "1→2; 1→0"},
		{"binomial", 3, 2, "2→0; 0→1"},
		{"binomial", 6, 0, "0→4; 0→2 4→5; 0→1 2→3"},
		{"binomial", 7, 0, "0→4; 0→2 4→6; 0→1 2→3 4→5"},
		{"binomial", 7, 3, "3→4; 3→1 4→6; 1→0 3→2 4→5"},
		{"binomial", 7, 5, "5→1; 1→3 5→6; 1→0 3→2 5→4"},
		{"binomial,order=ascending", 7, 0, "0→1; 0→2 1→3; 0→4 1→5 2→6"},
		{"binomial,order=ascending", 7, 5, "5→6; 5→0 6→1; 0→4 5→2 6→3"},
		// CLAIM G6: a mesh, the first phase along 0 4 8 12.
		{"mesh", 16, 0, "0→8; 0→4 8→12; 0→2 4→6 8→10 12→14; 0→1 2→3 4→5 6→7 8→9 10→11 12→13 14→15"},
		{"mesh,dims=2x3", 6, 4, "4→1; 1→2 4→5; 1→0 4→3"},
		{"mesh,dims=2x2x2", 8, 5, "5→1; 1→3 5→7; 1→0 3→2 5→4 7→6"},
		// CLAIM V5: two children each.
		{"binary-tree", 7, 0, "0→1; 0→2 1→3; 1→4 2→5; 2→6"},
		{"binary-tree", 5, 3, "3→4; 3→0 4→1; 4→2"},
		// Positions 0, 3 and 6, and then three at each.
		{"knomial,k=3", 9, 0, "0→3 0→6; 0→1 0→2 3→4 3→5 6→7 6→8"},
		{"knomial,k=3", 5, 4, "4→1; 1→0 1→2 4→3"},
		// Two pieces follow each other.
		{"chain,segment=500", 4, 2, "2→3; 2→3 3→0; 0→1 3→0; 0→1"},
		// Half of the vector goes to the odd positions, half to the even ones.
		{"split-binary", 7, 0, "0→1; 0→2 1→3; 1→5 2→4; 2→6 3↔4; 1↔2 5↔6"},
		{"split-binary", 2, 1, "1→0; 1→0"},
		// CLAIM I1: scatter, then allgather.
		{"scatter-allgather", 4, 0, "0→2; 0→1 2→3; 0↔1 2↔3; 0↔2 1↔3"},
		{"scatter-allgather,allgather=ring", 3, 0, "0→2; 0→1; 0→1 1→2 2→0; 0→1 1→2 2→0"},
	})
}

// On 16 ranks, the pattern of the ring, the mesh and the hypercube is the same.
//
// CLAIM G7 G9
func TestMeshesOfPowersOfTwoBroadcastAsTheRingDoes(t *testing.T) {
	for root := range 16 {
		want := messages(t, newSchedule(t, sched.Bcast, "binomial", 16, root))
		for _, dims := range []string{"4x4", "2x2x2x2", "8x2", "1x16"} {
			if got := messages(t, newSchedule(t, sched.Bcast, "mesh,dims="+dims, 16, root)); got != want {
				t.Errorf("%s, root %d: got %s, want %s", dims, root, got, want)
			}
		}
	}
}

// The procedures of the books say which ranks send and which receive, bit by bit, on a
// hypercube of d dimensions.
//
// CLAIM G10 G11 G12
func TestBinomialOnAHypercubeFollowsTheProcedureOfTheBooks(t *testing.T) {
	for d := range 7 {
		p := 1 << d
		for _, root := range []int{0, 1, p / 2, p - 1} {
			root %= p
			var steps []string
			for i := d - 1; i >= 0; i-- {
				var step []string
				for rank := range p {
					label := rank ^ root
					if label&(1<<i-1) == 0 && label>>i&1 == 0 { // the low i bits are 0, bit i is clear
						step = append(step, fmt.Sprintf("%d→%d", rank, rank^1<<i))
					}
				}
				steps = append(steps, strings.Join(step, " "))
			}
			want := strings.Join(steps, "; ")
			if got := messages(t, newSchedule(t, sched.Bcast, "binomial", p, root)); got != want {
				t.Errorf("bcast, p %d, root %d: got %s, want %s", p, root, got, want)
			}
			if got := messages(t, newSchedule(t, sched.Reduce, "binomial", p, root)); d > 0 && got != reversed(want) {
				t.Errorf("reduce, p %d, root %d: got %s, want %s", p, root, got, reversed(want))
			}
		}
	}
}

// Two steps apart, a rank sends a piece to its left, then one to its right while
// it takes the next.
func TestPiecesFollowEachOtherDownTheBinaryTree(t *testing.T) {
	got := messagesAndBlocks(t, newSchedule(t, sched.Bcast, "binary-tree,segment=334", 5, 0))
	want := "0→1[0..1]; 0→2[0..1] 1→3[0..1]; 0→1[1..2] 1→4[0..1]; " +
		"0→2[1..2] 1→3[1..2]; 0→1[2..3] 1→4[1..2]; 0→2[2..3] 1→3[2..3]; 1→4[2..3]"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Every rank but the root receives every piece once and again: what a rank
// sends, or receives, adds up to less than two vectors, whatever p is.
//
// CLAIM I1
func TestScatterAllgatherMovesLessThanTwoVectorsPerRank(t *testing.T) {
	for d := 1; d < 8; d++ {
		p := 1 << d
		for _, spec := range []string{"scatter-allgather", "scatter-allgather,allgather=ring"} {
			s := newSchedule(t, sched.Bcast, spec, p, p/3)
			got := tally(t, s)
			if got.most != 2*(p-1) {
				t.Errorf("%s: a rank moves %d of %d blocks, want %d", describe(s), got.most, p, 2*(p-1))
			}
		}
		binomial := tally(t, newSchedule(t, sched.Bcast, "binomial", p, p/3))
		if binomial.most != d {
			t.Errorf("binomial, p %d: a rank moves %d vectors, want %d", p, binomial.most, d)
		}
	}
}
