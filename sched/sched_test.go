package sched_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/sched"
)

// exchange is an allreduce of two ranks, written by hand: each sends its in and
// combines what comes, in rank order.
const exchange = `
schedule allreduce exchange
ranks 2
rank 0
  step
    copy in 0..1 to out 0
    send in 0..1 to 1
    recv out 0..1 from 1 combine right
rank 1
  step
    copy in 0..1 to out 0
    send in 0..1 to 0
    recv out 0..1 from 0 combine left
`

// parse reads a text that must be well formed.
func parse(t *testing.T, text string) *sched.Schedule {
	t.Helper()
	s, err := sched.ParseText([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAHandWrittenScheduleIsChecked(t *testing.T) {
	if err := parse(t, exchange).Check(); err != nil {
		t.Error(err)
	}
}

func TestCheckNamesLineRankStepPeerAndBlock(t *testing.T) {
	for _, c := range []struct {
		name, old, new string
		want           string
	}{
		{"swapped side", "combine left", "combine right", "line 9: rank 1 at the end, block 0: out holds block 0 of ranks 1, 0, want block 0 of ranks 0–1"},
		{"replaced", "from 1 combine right", "from 1", "line 4: rank 0 at the end, block 0: out holds block 0 of rank 1, want block 0 of ranks 0–1"},
		{"dropped receive", "recv out 0..1 from 0 combine left", "", "line 7: rank 0 in step 1, peer 1: sends a message that rank 1 never receives"},
		{"dropped send", "send in 0..1 to 1", "", "line 13: rank 1 in step 1, peer 0: waits for a message that rank 0 never sends"},
		{"never written", "copy in 0..1 to out 0", "", "line 8: rank 0 in step 1, peer 1, block 0: combines nothing with block 0 of rank 1"},
		{"to itself", "send in 0..1 to 1", "send in 0..1 to 0", "line 7: rank 0 in step 1, peer 0, block 0: send: a message to itself"},
		{"to a rank that does not exist", "send in 0..1 to 1", "send in 0..1 to 2", "line 7: rank 0 in step 1, peer 2, block 0: send: no rank 2: want 0 to 1"},
		{"beyond the vector", "send in 0..1 to 1", "send in 0..2 to 1", "line 7: rank 0 in step 1, peer 1, block 0: send: in 0..2: rank 0 has in 0..1"},
		{"sent while written", "send in 0..1 to 1", "send out 0..1 to 1", "line 8: rank 0 in step 1, peer 1, block 0: receive: writes out 0..1, which the step also sends"},
		{"writes in", "recv out 0..1 from 1", "recv in 0..1 from 1", "line 8: rank 0 in step 1, peer 1, block 0: receive: writes in, which is only to be read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(exchange, c.old, c.new, 1)
			if text == exchange {
				t.Fatal("the case changes nothing")
			}
			err := parse(t, text).Check()
			if err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %v", err, c.want)
			}
		})
	}
}

// A fault is one of a step's operations. Steps that do nothing are none, and comments are
// lines.
func TestAFaultNamesTheLineOfItsOperation(t *testing.T) {
	for _, c := range []struct {
		steps string // of rank 1, from line 5 on
		want  int
	}{
		{"step\ncopy in 0..1 to scratch 0\ncopy in 0..1 to out 7", 7},
		{"step\nstep # again\n\nsend scratch 0..1 to 1 0", 8},
		{"step\nsend in 0..1 to 0\nstep\ncopy scratch 0..1 to out 0", 8},
		{"step\nrecv out 0..1 from 0\nrecv out 0..2 from 0", 7},
	} {
		err := parse(t, "schedule allreduce wrong\nranks 2\nscratch 1\nrank 1\n"+c.steps+"\nrank 0\nstep\nrecv out 0..1 from 1\n").Check()
		var fault *sched.Fault
		if !errors.As(err, &fault) || fault.Line != c.want {
			t.Errorf("%q: got %v, want line %d", c.steps, err, c.want)
		}
	}
}

func TestCheckListsAllFaultsOfAKindUpToABound(t *testing.T) {
	text := "schedule bcast wrong\nranks 20\n"
	for rank := range 20 {
		text += fmt.Sprintf("rank %d\nstep\nsend out 0..1 to %d\n", rank, rank)
		err := parse(t, text).Check()
		var several sched.Faults
		if errors.As(err, &several) != (rank > 0) || rank > 0 && len(several) != min(rank+1, sched.MaxFaults) {
			t.Errorf("of %d faults: %v", rank+1, err)
		}
		var first *sched.Fault
		if !errors.As(err, &first) || first.Rank != 0 || first.Line != 5 {
			t.Errorf("the first of %d faults: %+v", rank+1, first)
		}
		if strings.Contains(err.Error(), "no more than 10 faults") != (rank+1 >= sched.MaxFaults) {
			t.Errorf("of %d faults: %v", rank+1, err)
		}
	}
}

func TestCheckNamesTheRanksOfADeadlock(t *testing.T) {
	// Each rank receives first and sends after.
	err := parse(t, `
schedule allgather polite
ranks 3
blocks 3
rank 0
  step
    copy in 0..1 to out 0
    recv out 2..3 from 2
  step
    send out 0..1 to 1
rank 1
  step
    copy in 1..2 to out 1
    recv out 0..1 from 0
  step
    send out 1..2 to 2
rank 2
  step
    copy in 2..3 to out 2
    recv out 1..2 from 1
  step
    send out 2..3 to 0
`).Check()
	want := "line 6: rank 0 in step 1, peer 2: deadlock: rank 0 in step 1, which waits for rank 2 in step 1, which waits for rank 1 in step 1, which waits for rank 0 in step 1"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %v", err, want)
	}
}

func TestReceivesOfTheSameBlocksAreOrdered(t *testing.T) {
	// Rank 0 lists rank 1 before rank 2, so rank 2 waits although its message
	// is ready first; the result is in rank order.
	s := parse(t, `
schedule reduce turns
ranks 3
rank 0
  step
    copy in 0..1 to out 0
    recv out 0..1 from 1 combine right
    recv out 0..1 from 2 combine right
rank 1
  step
    recv scratch 0..1 from 2
  step
    send in 0..1 to 0
rank 2
  step
    send in 0..1 to 1
  step
    send in 0..1 to 0
`)
	s.Scratch = 1
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	timeline, err := s.Timeline()
	if err != nil {
		t.Fatal(err)
	}
	if got := timeline.Steps(); got != 2 {
		t.Errorf("%d steps, want 2", got)
	}
}

func TestRanksOfAnAllreduceMustUseOneExpression(t *testing.T) {
	// Rank 0 makes 0 ⊕ (1 ⊕ 2), the others (0 ⊕ 1) ⊕ 2: in floating point they
	// may differ.
	err := parse(t, `
schedule allreduce sloppy
ranks 3
scratch 1
rank 0
  step
    copy in 0..1 to out 0
    send in 0..1 to 1 2
    recv scratch 0..1 from 1
    recv scratch 0..1 from 2 combine right
  step
    copy scratch 0..1 to out 0 combine right
rank 1
  step
    copy in 0..1 to out 0
    send in 0..1 to 0 2
    recv out 0..1 from 0 combine left
    recv out 0..1 from 2 combine right
rank 2
  step
    copy in 0..1 to scratch 0
    send in 0..1 to 0 1
    recv out 0..1 from 0
    recv out 0..1 from 1 combine right
  step
    copy scratch 0..1 to out 0 combine right
`).Check()
	want := "line 13: ranks 1–2 at the end, block 0: out holds block 0 of ranks 0–2, but combined in another way than on another rank, so their bits may differ"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %v", err, want)
	}
}

func TestAFaultNamesTheStepThatReplacesARightValue(t *testing.T) {
	for how, holds := range map[string]string{"": "block 0 of rank 0", " combine right": "block 0 of ranks 0–1, 0"} {
		text := strings.Replace(exchange, "rank 1\n", "  step\n    send in 0..1 to 1\nrank 1\n", 1) + "  step\n    recv out 0..1 from 0" + how + "\n"
		err := parse(t, text).Check()
		want := "line 17: rank 1 in step 2, peer 0, block 0: replaces the right value, block 0 of ranks 0–1: at the end, out holds " + holds + ", want block 0 of ranks 0–1"
		if err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %v", err, want)
		}
	}
}

func TestNoRankLeavesABarrierBeforeAllHaveArrived(t *testing.T) {
	half := `
schedule barrier half
ranks 2
blocks 0
rank 0
  step
    send in 0..0 to 1
rank 1
  step
    recv out 0..0 from 0
`
	err := parse(t, half).Check()
	want := "line 5: rank 0 at the end, peer 1: leaves the barrier without knowing that rank 1 has arrived"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %v", err, want)
	}
}

// Two blocks swap their numbers on the way. They may differ in length by an element,
// unless the schedule says that they must not.
const crossing = `
schedule bcast crossing
ranks 2
blocks 2
scratch 2
equal-blocks
rank 0
  step
    copy in 0..2 to out 0
    copy in 0..1 to scratch 1
    copy in 1..2 to scratch 0
    send scratch 0..2 to 1
rank 1
  step
    recv scratch 0..2 from 0
  step
    copy scratch 1..2 to out 0
    copy scratch 0..1 to out 1
`

func TestBlocksMayLandAtOtherNumbersOnlyIfAllAreEquallyLong(t *testing.T) {
	s := parse(t, crossing)
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	s.EqualBlocks = false
	want := "line 10: rank 0 in step 1, block 0: copy: block 0 lands where block 1 belongs, and they may differ in length; " +
		"line 17: rank 1 in step 2, block 1: copy: block 1 lands where block 0 belongs, and they may differ in length"
	if err := s.Check(); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestTextAndJSONParseBackToAnEqualSchedule(t *testing.T) {
	for name, text := range map[string]string{
		"exchange": exchange,
		"crossing": crossing,
		// One step of rank 0 spans two steps of the timeline, its sends are not in
		// the order of their receivers, and equal sends are not one multicast:
		// all of that must survive.
		"awkward": `
schedule bcast awkward
ranks 3
blocks 2
scratch 2
rank 0
  step
    copy in 0..2 to out 0
    send out 0..2 to 2
    send out 0..1 to 1
    send out 0..1 to 1
rank 1
  step
    recv out 0..1 from 0
    recv out 0..1 from 0
  step
    recv scratch 0..1 from 2
    recv out 1..2 from 2
rank 2
  step
    recv out 0..2 from 0
  step
    send out 0..1 to 1
    send out 1..2 to 1
`,
	} {
		t.Run(name, func(t *testing.T) {
			s := parse(t, text)
			if err := s.Check(); err != nil {
				t.Fatal(err)
			}
			back := parse(t, s.String())
			if !back.Equal(s) {
				t.Errorf("text came back as\n%v\nwant\n%v", back, s)
			}
			data, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			fromJSON, err := sched.Parse(data)
			if err != nil {
				t.Fatal(err)
			}
			if !fromJSON.Equal(s) {
				t.Errorf("JSON %s came back as\n%v\nwant\n%v", data, fromJSON, s)
			}
		})
	}
}

func TestParseErrorsNameTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  `sched: no schedule: want a first line like "schedule bcast mine"`,
		"schedule bcats x":                  `sched: line 1: no collective "bcats": want bcast, or another of reduce, scatter, gather, allgather, reduce-scatter, allreduce, alltoall, scan, exscan, barrier, shift`,
		"ranks 3":                           `sched: line 1: "ranks" before the line "schedule COLLECTIVE NAME"`,
		"schedule bcast x\nranks three":     `sched: line 2: "three": want a number`,
		"schedule bcast x\nranks 2\nrank 2": `sched: line 3: rank 2 of 2: want 0 to 1 (a line "ranks P" comes first)`,
		"schedule bcast x\nranks 2\nstep":   `sched: line 3: a step before any line "rank R"`,
		"schedule bcast x\nranks 2\nrank 0\nsend out":                              `sched: line 4: want a line "step" first`,
		"schedule bcast x\nranks 1\nrank 0\nstep\ncopy in 0-1 to out 0":            `sched: line 5: "0-1": want a range of blocks like 0..4`,
		"schedule bcast x\nranks 2\nrank 0\nstep\nsend in 0..1 to":                 `sched: line 5: "": want a number`,
		"schedule bcast x\nranks 2\nrank 0\nstep\nrecv out 0..1 from 1 combine up": `sched: line 5: combine "up": want left or right`,
		"schedule bcast x": `sched: 0 ranks: want 1 to 16777216`,
	} {
		_, err := sched.ParseText([]byte(text))
		if err == nil || err.Error() != want {
			t.Errorf("%q:\ngot  %v\nwant %v", text, err, want)
		}
	}
}
