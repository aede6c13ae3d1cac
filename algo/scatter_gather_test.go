package algo_test

import (
	"testing"

	"github.com/chorale-go/chorale/sched"
)

func TestScattersAndGathersSendTheMessagesOfTheTexts(t *testing.T) {
	expectMessages(t, sched.Scatter, []messageCase{
		{"linear", 4, 1, "1→0; 1→2; 1→3"},
		{"direct", 4, 1, "1→0 1→2 1→3"},
		{"binomial", 8, 0, "0→4; 0→2 4→6; 0→1 2→3 4→5 6→7"},
		{"binomial", 1, 0, ""},
		// CLAIM S3: the pattern of the hypercube on a mesh.
		{"mesh", 16, 0, "0→8; 0→4 8→12; 0→2 4→6 8→10 12→14; 0→1 2→3 4→5 6→7 8→9 10→11 12→13 14→15"},
		{"mesh,dims=2x3", 6, 4, "4→1; 1→2 4→5; 1→0 4→3"},
	})
	expectMessages(t, sched.Gather, []messageCase{
		{"linear", 4, 1, "0→1; 2→1; 3→1"},
		{"direct", 4, 1, "0→1 2→1 3→1"},
		// CLAIM S2: every odd rank to the even one below, then multiples of 4.
		{"binomial", 8, 0, "1→0 3→2 5→4 7→6; 2→0 6→4; 4→0"},
		{"binomial", 1, 0, ""},
		{"mesh,dims=2x3", 6, 4, "0→1 3→4; 2→1 5→4; 1→4"},
	})
	expectMessages(t, sched.AllGather, []messageCase{
		{"linear", 3, 0, "1→0; 2→0; 0→1; 0→2"},
		{"direct", 3, 0, "0↔1 0↔2 1↔2"},
		{"ring", 4, 0, "0→1 1→2 2→3 3→0; 0→1 1→2 2→3 3→0; 0→1 1→2 2→3 3→0"},
		{"recursive-doubling", 8, 0, "0↔1 2↔3 4↔5 6↔7; 0↔2 1↔3 4↔6 5↔7; 0↔4 1↔5 2↔6 3↔7"},
		{"recursive-doubling", 6, 0, "1→0 3→2 4↔5; 0↔2; 0↔4 2↔5; 0→1 2→3"},
		{"mesh,dims=2x3", 6, 0, "0→1 1→2 2→0 3→4 4→5 5→3; 0→1 1→2 2→0 3→4 4→5 5→3; 0↔3 1↔4 2↔5"},
		{"neighbor-exchange", 1, 0, ""},
		{"neighbor-exchange", 6, 0, "0↔1 2↔3 4↔5; 0↔5 1↔2 3↔4; 0↔1 2↔3 4↔5"},
	})
	expectMessages(t, sched.ReduceScatter, []messageCase{
		{"ring", 3, 0, "0→1 1→2 2→0; 0→1 1→2 2→0"},
		// A last step without messages joins what was below with what was above.
		{"pairwise", 3, 0, "0→1 1→2 2→0; 0→2 1→0 2→1; "},
		{"direct", 3, 0, "0↔1 0↔2 1↔2; "},
		{"recursive-halving", 8, 0, "0↔4 1↔5 2↔6 3↔7; 0↔2 1↔3 4↔6 5↔7; 0↔1 2↔3 4↔5 6↔7"},
		{"recursive-halving", 3, 0, "1→0; 0↔2; 0→1"},
		{"recursive-doubling", 8, 0, "0↔1 2↔3 4↔5 6↔7; 0↔2 1↔3 4↔6 5↔7; 0↔4 1↔5 2↔6 3↔7"},
		{"recursive-doubling", 5, 0, "1→0 3↔4; 0↔2; 0↔3 2↔4; 0→1"},
		// Ranks 1 and 4, 3 and 6 are mirror images.
		{"butterfly", 8, 0, "0↔1 2↔3 4↔5 6↔7; 0↔2 1↔3 4↔6 5↔7; 0↔4 1↔5 2↔6 3↔7; 1↔4 3↔6"},
		{"butterfly", 6, 0, "1→0 3→2 4↔5; 0↔2; 0↔4 2↔5; 0→1 2↔4; 4→3"},
		{"mesh,dims=2x3", 6, 0, "0↔3 1↔4 2↔5; 0→1 1→2 2→0 3→4 4→5 5→3; 0→1 1→2 2→0 3→4 4→5 5→3"},
	})
}

// Nothing is duplicated: a rank hands on the half that is meant for the others.
//
// CLAIM S1
func TestScatterHandsOnHalves(t *testing.T) {
	got := messagesAndBlocks(t, newSchedule(t, sched.Scatter, "binomial", 8, 0))
	want := "0→4[4..8]; 0→2[2..4] 4→6[6..8]; 0→1[1..2] 2→3[3..4] 4→5[5..6] 6→7[7..8]"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// CLAIM S2
func TestGatherConcatenates(t *testing.T) {
	got := messagesAndBlocks(t, newSchedule(t, sched.Gather, "binomial", 8, 0))
	want := "1→0[1..2] 3→2[3..4] 5→4[5..6] 7→6[7..8]; 2→0[2..4] 6→4[6..8]; 4→0[4..8]"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Without a power of two, and with the root in the middle, what is handed on is
// still one range of blocks.
func TestScatterMovesOneRangeOfBlocksPerMessage(t *testing.T) {
	got := messagesAndBlocks(t, newSchedule(t, sched.Scatter, "binomial", 7, 5))
	want := "5→1[0..3]; 1→2[2..3] 5→3[3..5]; 1→0[0..1] 3→4[4..5] 5→6[6..7]"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// After k steps a rank has what it began with and what the 2^k − 1 ranks after it
// did, whatever p is.
func TestBruckTakesNoMoreThanItLacks(t *testing.T) {
	got := messages(t, newSchedule(t, sched.AllGather, "bruck", 5, 0))
	want := "0→4 1→0 2→1 3→2 4→3; 0→3 1→4 2→0 3→1 4→2; 0→1 1→2 2→3 3→4 4→0; "
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, p := range sizes[1:] {
		for i, step := range moments(t, newSchedule(t, sched.AllGather, "bruck", p, 0)) {
			for _, m := range step.messages {
				if want := min(1<<i, p-1<<i); m.Blocks.Len() != want {
					t.Errorf("p %d, step %d: %d sends %d blocks, want %d", p, i, m.From, m.Blocks.Len(), want)
				}
			}
		}
	}
}

// The two blocks that came last go on to the other neighbor.
func TestNeighborsExchangeWhatCameLast(t *testing.T) {
	got := messagesAndBlocks(t, newSchedule(t, sched.AllGather, "neighbor-exchange", 6, 0))
	want := "0→1[0..1] 1→0[1..2] 2→3[2..3] 3→2[3..4] 4→5[4..5] 5→4[5..6]; " +
		"0→5[0..2] 1→2[0..2] 2→1[2..4] 3→4[2..4] 4→3[4..6] 5→0[4..6]; " +
		"0→1[4..6] 1→0[2..4] 2→3[0..2] 3→2[4..6] 4→5[2..4] 5→4[0..2]"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// In step k each rank passes on what k ranks before it began with.
func TestTheRingPassesOnWhatCameLast(t *testing.T) {
	got := messagesAndBlocks(t, newSchedule(t, sched.AllGather, "ring", 3, 0))
	want := "0→1[0..1] 1→2[1..2] 2→0[2..3]; 0→1[2..3] 1→2[0..1] 2→0[1..2]"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// What is exchanged doubles in an allgather and halves in a reduce-scatter. The
// vector is exchanged whole until the last step where rank order counts.
func TestDoublingAndHalvingExchangeRunsOfBlocks(t *testing.T) {
	got := messagesAndBlocks(t, newSchedule(t, sched.AllGather, "recursive-doubling", 4, 0))
	want := "0→1[0..1] 1→0[1..2] 2→3[2..3] 3→2[3..4]; 0→2[0..2] 1→3[0..2] 2→0[2..4] 3→1[2..4]"
	if got != want {
		t.Errorf("allgather: got  %s\nwant %s", got, want)
	}
	got = messagesAndBlocks(t, newSchedule(t, sched.ReduceScatter, "recursive-halving", 4, 0))
	want = "0→2[2..4] 1→3[2..4] 2→0[0..2] 3→1[0..2]; 0→1[1..2] 1→0[0..1] 2→3[3..4] 3→2[2..3]"
	if got != want {
		t.Errorf("reduce-scatter: got  %s\nwant %s", got, want)
	}
	got = messagesAndBlocks(t, newSchedule(t, sched.ReduceScatter, "recursive-doubling", 4, 0))
	want = "0↔1[0..4] 2↔3[0..4]; 0→2[2..3] 1→3[3..4] 2→0[0..1] 3→1[1..2]"
	if got != want {
		t.Errorf("reduce-scatter by recursive-doubling: got  %s\nwant %s", got, want)
	}
}
