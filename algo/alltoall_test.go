package algo_test

import (
	"testing"

	"github.com/chorale-go/chorale/sched"
)

func TestAlltoallsSendTheMessagesOfTheTexts(t *testing.T) {
	expectMessages(t, sched.AllToAll, []messageCase{
		{"linear", 4, 0, "0↔1; 0↔2; 0↔3 1↔2; 1↔3; 2↔3"},
		{"pairwise", 1, 0, ""},
		{"pairwise", 2, 0, "0↔1"},
		{"pairwise", 3, 0, "0→1 1→2 2→0; 0→2 1→0 2→1"},
		{"pairwise", 4, 0, "0→1 1→2 2→3 3→0; 0↔2 1↔3; 0→3 1→0 2→1 3→2"},
		{"direct", 3, 0, "0↔1 0↔2 1↔2"},
		{"ring", 1, 0, ""},
		{"ring", 3, 0, "0→1 1→2 2→0; 0→1 1→2 2→0; "},
		{"hypercube", 8, 0, "0↔1 2↔3 4↔5 6↔7; 0↔2 1↔3 4↔6 5↔7; 0↔4 1↔5 2↔6 3↔7; "},
		{"mesh,dims=2x3", 6, 0, "0→1 1→2 2→0 3→4 4→5 5→3; 0→1 1→2 2→0 3→4 4→5 5→3; 0↔3 1↔4 2↔5; "},
		{"bruck", 5, 0, "0→1 1→2 2→3 3→4 4→0; 0→2 1→3 2→4 3→0 4→1; 0→4 1→0 2→1 3→2 4→3; "},
	})
}

// A bundle goes on until it has come to the position that it is for: in each step
// there is one less.
//
// CLAIM D3
func TestBundlesGetFewerOnTheirWayRound(t *testing.T) {
	for _, test := range []struct {
		spec string
		p    int
		want []int // blocks of a message, step by step
	}{
		{"ring", 5, []int{4, 3, 2, 1}},
		{"mesh", 9, []int{6, 3, 6, 3}},
		{"mesh,dims=2x3", 6, []int{4, 2, 3}},
		{"hypercube", 16, []int{8, 8, 8, 8}},
		{"bruck", 16, []int{8, 8, 8, 8}},
		{"bruck", 11, []int{5, 5, 4, 3}},
	} {
		s := newSchedule(t, sched.AllToAll, test.spec, test.p, 0)
		for i, step := range moments(t, s) {
			for _, m := range step.messages {
				if m.Blocks.Len() != test.want[i] {
					t.Errorf("%s, step %d: %d sends %d blocks, want %d", describe(s), i+1, m.From, m.Blocks.Len(), test.want[i])
				}
			}
		}
	}
}

// CLAIM D3: step j pairs each rank with rank XOR j.
func TestEcubePairsRanksByTheBitsOfTheStep(t *testing.T) {
	for _, p := range []int{1, 2, 4, 8, 32} {
		s := newSchedule(t, sched.AllToAll, "ecube", p, 0)
		steps := moments(t, s)
		if p > 1 && len(steps) != p-1 {
			t.Fatalf("%s: %d steps, want %d", describe(s), len(steps), p-1)
		}
		for j, step := range steps {
			for _, m := range step.messages {
				if m.To != m.From^(j+1) || m.Blocks != (sched.Range{Lo: m.To, Hi: m.To + 1}) {
					t.Errorf("%s, step %d: %d sends block %v to %d", describe(s), j+1, m.From, m.Blocks, m.To)
				}
			}
		}
	}
}

// What is meant for one rank goes to it straight, so parts may differ in length
// and nothing is sent twice.
func TestNothingIsPassedOnWhereAlltoallIsUneven(t *testing.T) {
	for _, spec := range []string{"linear", "pairwise", "ecube", "direct"} {
		s := newSchedule(t, sched.AllToAll, spec, 16, 0)
		if got := tally(t, s); got.most != 15 || got.messages != 16*15 || !s.Uneven {
			t.Errorf("%s: %d messages, a rank moves %d blocks, uneven %v; want 240, 15, true", describe(s), got.messages, got.most, s.Uneven)
		}
	}
}

// CLAIM D4: the shorter way round, or straight.
func TestShiftsGoTheShorterWayRound(t *testing.T) {
	expectMessages(t, sched.Shift, []messageCase{
		{"ring", 5, 0, ""},
		{"ring", 5, 1, "0→1 1→2 2→3 3→4 4→0"},
		{"ring", 5, 2, "0→1 1→2 2→3 3→4 4→0; 0→1 1→2 2→3 3→4 4→0"},
		{"ring", 5, 3, "0→4 1→0 2→1 3→2 4→3; 0→4 1→0 2→1 3→2 4→3"},
		{"ring", 4, 2, "0→1 1→2 2→3 3→0; 0→1 1→2 2→3 3→0"},
		{"direct", 5, 3, "0→3 1→4 2→0 3→1 4→2"},
		{"direct", 5, 0, ""},
	})
	for p := range 20 {
		for q := range p {
			s := newSchedule(t, sched.Shift, "ring", p, q)
			if got, want := len(moments(t, s)), min(q, p-q); q > 0 && got != want {
				t.Errorf("%s: %d steps, want %d", describe(s), got, want)
			}
		}
	}
}
