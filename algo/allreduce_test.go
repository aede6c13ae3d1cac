package algo_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/sched"
)

func TestAllreducesSendTheMessagesOfTheTexts(t *testing.T) {
	expectMessages(t, sched.AllReduce, []messageCase{
		{"tree", 5, 0, "3→0 4→1; 2→0; 1→0; 0→1; 0→2 1→4; 0→3"},
		{"tree", 7, 0, "4→0 5→1 6→2; 2→0 3→1; 1→0; 0→1; 0→2 1→3; 0→4 1→5 2→6"},
		// CLAIM B1 V1: groups of 2, 4, 8; both of each two send.
		{"butterfly", 8, 0, "0↔1 2↔3 4↔5 6↔7; 0↔2 1↔3 4↔6 5↔7; 0↔4 1↔5 2↔6 3↔7"},
		{"recursive-doubling", 8, 0, "0↔1 2↔3 4↔5 6↔7; 0↔2 1↔3 4↔6 5↔7; 0↔4 1↔5 2↔6 3↔7"},
		// CLAIM B2: afterwards the first of the group tells those without a partner.
		{"butterfly", 3, 0, "0↔1; 0↔2; 0→1"},
		{"butterfly", 5, 0, "0↔1 2↔3; 0↔2 1↔3; 0↔4; 0→1 0→2 0→3"},
		{"butterfly", 6, 0, "0↔1 2↔3 4↔5; 0↔2 1↔3; 0↔4 1↔5; 0→2 0→3"},
		{"butterfly", 7, 0, "0↔1 2↔3 4↔5; 0↔2 1↔3 4↔6; 2↔6 4→5; 0↔4 1↔5; 0→3"},
		{"butterfly", 1, 0, ""},
		{"recursive-doubling", 7, 0, "1→0 3→2 5→4; 0↔2 4↔6; 0↔4 2↔6; 0→1 2→3 4→5"},
	})
	expectMessages(t, sched.AllReduce, []messageCase{
		{"linear", 4, 0, "1→0; 2→0; 3→0; 0→1; 0→2; 0→3"},
		{"direct", 3, 0, "0↔1 0↔2 1↔2; "}, // rank 2 ends with its own and what came
		{"recursive-multiplying,k=3", 7, 0, "1→0 4↔5 4↔6 5↔6; 0↔2 0↔3 2↔3; 0↔4 2↔5 3↔6; 0→1"},
		{"hierarchical,group=3", 8, 0, "1→0 4→3 7→6; 2→0 5→3; 3→0; 0↔6; 0→3 6→7; 0→2 3→5; 0→1 3→4"},
		{"hierarchical,hosts=2+3,between=recursive-halving", 5, 0, "0↔1 2→3 4→2; 3→2 4→3; 0↔2 1↔3; 0↔2 1↔3; 0↔1 2↔3 2→4 3→4"},
		{"ring", 3, 0, "0→1 1→2 2→0; 0→1 1→2 2→0; 0→1 1→2 2→0; 0→1 1→2 2→0"},
		// Distances 1, −1, 3, and back.
		{"swing", 8, 0, "0↔1 2↔3 4↔5 6↔7; 0↔7 1↔2 3↔4 5↔6; 0↔3 1↔6 2↔5 4↔7; 0↔3 1↔6 2↔5 4↔7; 0↔7 1↔2 3↔4 5↔6; 0↔1 2↔3 4↔5 6↔7"},
	})
	expectMessages(t, sched.Scan, []messageCase{
		{"linear", 4, 0, "0→1; 1→2; 2→3"},
		{"recursive-doubling", 6, 0, "0→1 1→2 2→3 3→4 4→5; 0→2 1→3 2→4 3→5; 0→4 1→5"},
	})
	expectMessages(t, sched.ExScan, []messageCase{
		{"linear", 4, 0, "0→1; 1→2; 2→3"},
		{"recursive-doubling", 6, 0, "0→1 1→2 2→3 3→4 4→5; 0→2 1→3 2→4 3→5; 0→4 1→5"},
	})
	expectMessages(t, sched.Barrier, []messageCase{
		{"linear", 4, 0, "1→0 2→0 3→0; 0→1 0→2 0→3"},
		{"direct", 3, 0, "0↔1 0↔2 1↔2"},
		{"tree", 6, 0, "1→0 3→2 5→4; 2→0; 4→0; 0→4; 0→2 4→5; 0→1 2→3"},
		{"double-ring", 4, 0, "0→1; 1→2; 2→3; 3→0; 0→1; 1→2"},
		// CLAIM V2: the same exchange with empty tokens is a barrier.
		{"butterfly", 8, 0, "0↔1 2↔3 4↔5 6↔7; 0↔2 1↔3 4↔6 5↔7; 0↔4 1↔5 2↔6 3↔7"},
		{"butterfly", 7, 0, "0↔1 2↔3 4↔5; 0↔2 1↔3 4↔6; 2↔6 4→5; 0↔4 1↔5; 0→3"},
		{"dissemination", 5, 0, "0→1 1→2 2→3 3→4 4→0; 0→2 1→3 2→4 3→0 4→1; 0→4 1→0 2→1 3→2 4→3"},
		{"dissemination", 2, 0, "0↔1"},
	})
}

// The rule, word by word: partners that exist exchange; afterwards the first of
// the group sends to each of the front half whose partner does not exist.
//
// CLAIM B1 B2
func TestTheButterflyFollowsTheRuleOfGroups(t *testing.T) {
	for _, p := range sizes {
		want := make(map[string]int)
		for size := 2; size < 2*p; size *= 2 {
			for first := 0; first < p; first += size {
				for i := first; i < first+size/2; i++ {
					switch partner := i + size/2; {
					case partner < p:
						want[fmt.Sprintf("%d→%d", i, partner)]++
						want[fmt.Sprintf("%d→%d", partner, i)]++
					case first+size/2 < p:
						want[fmt.Sprintf("%d→%d", first, i)]++
					}
				}
			}
		}
		s := newSchedule(t, sched.AllReduce, "butterfly", p, 0)
		timeline, err := s.Timeline()
		if err != nil {
			t.Fatal(err)
		}
		for i := range timeline.Steps() {
			for _, m := range timeline.Messages(i) {
				want[fmt.Sprintf("%d→%d", m.From, m.To)]--
			}
		}
		for message, missing := range want {
			if missing != 0 {
				t.Errorf("p %d: %d of %s are missing", p, missing, message)
			}
		}
	}
}

// With one rank more than a power of two, the first rank sends to all but one
// of the others in the end. Folding needs two more steps instead, for any p.
//
// CLAIM B3
func TestTheButterflysWeaknessIsOnePastAPowerOfTwo(t *testing.T) {
	for _, p := range []int{3, 5, 9, 17, 33, 65, 129} {
		program := newSchedule(t, sched.AllReduce, "butterfly", p, 0).Program(0)
		if last := program[len(program)-1]; len(last.Sends) != 1 || len(last.Sends[0].To) != p-2 {
			t.Errorf("p %d: rank 0 ends with %v, want a send to %d ranks", p, last, p-2)
		}
	}
	for p := 3; p < 130; p++ {
		if p&(p-1) == 0 {
			continue
		}
		floor := len(fmt.Sprintf("%b", p)) - 1
		if got := tally(t, newSchedule(t, sched.AllReduce, "recursive-doubling", p, 0)).steps; got != floor+2 {
			t.Errorf("recursive-doubling, p %d: %d steps, want %d", p, got, floor+2)
		}
	}
}

// Four tasks: after the first exchange 0 and 1 hold "0.1", 2 and 3 hold "2.3";
// after the second all hold the result.
//
// CLAIM V1
func TestSimpleExchangeHoldsThePartialSumsOfTheText(t *testing.T) {
	s := newSchedule(t, sched.AllReduce, "recursive-doubling", 4, 0)
	for steps, want := range map[int][]string{
		1: {"0.1", "0.1", "2.3", "2.3"},
		2: {"0.1.2.3", "0.1.2.3", "0.1.2.3", "0.1.2.3"},
	} {
		begun := *s
		begun.Make = func(_ *sched.Builder, rank int) sched.Program { return s.Program(rank)[:steps] }
		ranks, err := runNaively(&begun, orders["first"])
		if err != nil {
			t.Fatal(err)
		}
		for r, rank := range ranks {
			held := rank.memory[sched.Out][0]
			if steps == 1 {
				held = rank.memory[sched.Scratch][0]
			}
			if got := strings.Trim(strings.ReplaceAll(fmt.Sprint(held.ranks), " ", "."), "[]"); got != want[r] {
				t.Errorf("after step %d rank %d holds %s, want %s", steps, r, got, want[r])
			}
		}
	}
}

// Half the vector in the first step, a quarter in the second; then the steps
// reversed, without combining. A task sends N(P−1)/P each way and combines as
// much, in twice the messages of the simple exchange.
//
// CLAIM V3
func TestRecursiveHalvingHalvesWhatIsExchanged(t *testing.T) {
	got := messagesAndBlocks(t, newSchedule(t, sched.AllReduce, "recursive-halving", 4, 0))
	want := "0→1[2..4] 1→0[0..2] 2→3[2..4] 3→2[0..2]; " +
		"0→2[1..2] 1→3[3..4] 2→0[0..1] 3→1[2..3]; " +
		"0→2[0..1] 1→3[2..3] 2→0[1..2] 3→1[3..4]; " +
		"0→1[0..2] 1→0[2..4] 2→3[0..2] 3→2[2..4]"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for d := 1; d < 8; d++ {
		p := 1 << d
		halving := tally(t, newSchedule(t, sched.AllReduce, "recursive-halving", p, 0))
		simple := tally(t, newSchedule(t, sched.AllReduce, "recursive-doubling", p, 0))
		if want := (count{2 * d, 2 * simple.messages, 2 * (p - 1), p - 1}); halving != want {
			t.Errorf("recursive-halving, p %d: %+v, want %+v", p, halving, want)
		}
		if want := (count{d, p * d, d, d}); simple != want {
			t.Errorf("recursive-doubling, p %d: %+v, want %+v", p, simple, want)
		}
	}
}

// Some stages of halving, exchange of what is left, the stages reversed.
//
// CLAIM V4
func TestTheHybridHalvesExchangesAndRestores(t *testing.T) {
	got := messagesAndBlocks(t, newSchedule(t, sched.AllReduce, "halving-exchange,stages=1", 4, 0))
	want := "0→1[1..2] 1→0[0..1] 2→3[1..2] 3→2[0..1]; " +
		"0↔2[0..1] 1↔3[1..2]; " +
		"0→1[0..1] 1→0[1..2] 2→3[0..1] 3→2[1..2]"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, p := range []int{1, 2, 3, 7, 8, 12, 16, 17, 64} {
		stages := len(fmt.Sprintf("%b", p)) - 1
		for spec, other := range map[string]string{
			"halving-exchange,stages=0":                         "recursive-doubling",
			fmt.Sprintf("halving-exchange,stages=%d", stages):   "recursive-halving",
			fmt.Sprintf("halving-exchange,stages=%d", stages/2): "halving-exchange",
		} {
			s, o := newSchedule(t, sched.AllReduce, spec, p, 0), newSchedule(t, sched.AllReduce, other, p, 0)
			o.Algorithm = s.Algorithm
			if !s.Equal(o) {
				t.Errorf("p %d: %s is not %s", p, spec, other)
			}
		}
	}
}

// The gather that ends a reduction and the scatter that begins a broadcast
// cancel: what is left is the first half of the one and the second half of the
// other.
//
// CLAIM I3
func TestAllreduceIsReduceScatterAndAllgather(t *testing.T) {
	for d := range 7 {
		p := 1 << d
		halving := strings.Split(messagesAndBlocks(t, newSchedule(t, sched.AllReduce, "recursive-halving", p, 0)), "; ")
		reduce := strings.Split(messagesAndBlocks(t, newSchedule(t, sched.Reduce, "reduce-scatter-gather", p, 0)), "; ")
		if !slices.Equal(halving[:d], reduce[:d]) {
			t.Errorf("p %d: the reduce-scatter is %s, want %s", p, halving[:d], reduce[:d])
		}
		all := strings.Split(messages(t, newSchedule(t, sched.AllReduce, "recursive-halving", p, 0)), "; ")
		bcast := strings.Split(messages(t, newSchedule(t, sched.Bcast, "scatter-allgather", p, 0)), "; ")
		back := slices.Clone(all[d:])
		slices.Reverse(back)
		if d > 0 && !slices.Equal(back, bcast[d:]) {
			t.Errorf("p %d: the allgather reversed is %s, want %s", p, back, bcast[d:])
		}
	}
}

// Every number of stages combines the same operands in the same order, and so
// does the simple exchange: the bits do not depend on the choice.
func TestEveryNumberOfStagesYieldsTheSameBits(t *testing.T) {
	for _, p := range []int{2, 3, 5, 8, 12, 16} {
		var first string
		for stages := 0; 1<<stages <= p; stages++ {
			s := newSchedule(t, sched.AllReduce, fmt.Sprintf("halving-exchange,stages=%d", stages), p, 0)
			ranks, err := runNaively(s, orders["first"])
			if err != nil {
				t.Fatal(err)
			}
			for b := range s.Blocks {
				made := ranks[0].memory[sched.Out][b].made
				if first == "" {
					first = made
				}
				if made != first {
					t.Errorf("p %d, %d stages, block %d: made as %s, want %s", p, stages, b, made, first)
				}
			}
		}
	}
}
