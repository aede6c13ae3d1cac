package sched_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/sched"
)

// replayed returns the replay of a schedule after so many steps.
func replayed(t *testing.T, s *sched.Schedule, steps int) *sched.Replay {
	t.Helper()
	timeline, err := s.Timeline()
	if err != nil {
		t.Fatal(err)
	}
	r := timeline.Replay()
	for range steps {
		if err := r.Step(); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// chain is a reduction along ranks 2, 1, 0 whose result passes through scratch.
const chain = `
schedule reduce chain
ranks 3
scratch 1
rank 0
  step
    copy in 0..1 to out 0
  step
    recv out 0..1 from 1 combine right
rank 1
  step
    copy in 0..1 to scratch 0
    recv scratch 0..1 from 2 combine SIDE
  step
    send scratch 0..1 to 0
rank 2
  step
    send in 0..1 to 1
`

func TestReplayHoldsWhatEachStepLeaves(t *testing.T) {
	s := parse(t, strings.Replace(chain, "SIDE", "right", 1))
	for step, want := range []string{
		"nothing; nothing",
		"block 0 of rank 0; block 0 of ranks 1–2",
		"block 0 of ranks 0–2; block 0 of ranks 1–2",
	} {
		r := replayed(t, s, step)
		got := fmt.Sprintf("%v; %v", r.Value(0, sched.Out, 0), r.Value(1, sched.Scratch, 0))
		if got != want {
			t.Errorf("after %d steps: %s, want %s", step, got, want)
		}
		if in := r.Value(2, sched.In, 0).String(); in != "block 0 of rank 2" {
			t.Errorf("after %d steps, rank 2 has %s", step, in)
		}
	}
}

func TestAValueNamesItsBlockAndItsRanksInOperandOrder(t *testing.T) {
	for _, c := range []struct{ header, want string }{
		{"", "true 0 [0 2 1]"},
		{"commutative\n", "true 0 [0 1 2]"},
	} {
		s := parse(t, strings.Replace(strings.Replace(chain, "SIDE", "left", 1), "rank 0\n", c.header+"rank 0\n", 1))
		r := replayed(t, s, 2)
		v := r.Value(0, sched.Out, 0)
		if got := fmt.Sprint(v.Defined(), v.Block(), v.Ranks()); got != c.want {
			t.Errorf("%q: %s, want %s", c.header, got, c.want)
		}
	}
	if r := replayed(t, parse(t, exchange), 0); r.Value(1, sched.Out, 0).Defined() {
		t.Error("out is defined before the first step")
	}
}

func TestReplayStopsAtTheFirstFault(t *testing.T) {
	s := parse(t, strings.Replace(exchange, "copy in 0..1 to out 0", "", 1))
	timeline, err := s.Timeline()
	if err != nil {
		t.Fatal(err)
	}
	var fault *sched.Fault
	if err := timeline.Replay().Step(); !errors.As(err, &fault) || fault.Rank != 0 || fault.Peer != 1 {
		t.Errorf("got %v, want a fault of rank 0 with rank 1", err)
	}
}

// In step k of a dissemination barrier, a rank hears from the rank 2^k below.
func TestReplaySaysOfWhoseArrivalARankOfABarrierKnows(t *testing.T) {
	const p = 70 // more than a word of bits
	s, err := algo.New(sched.Barrier, "dissemination", p, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for step, known := range []int{1, 2, 4, 8, 16, 32, 64, p} {
		r := replayed(t, s, step)
		for _, rank := range []int{0, 1, 63, 64, p - 1} {
			for other := range p {
				if got, want := r.Knows(rank, other), (rank-other+p)%p < known; got != want {
					t.Fatalf("after %d steps, rank %d knows of rank %d: %v, want %v", step, rank, other, got, want)
				}
			}
		}
	}
	if replayed(t, parse(t, exchange), 1).Knows(0, 0) {
		t.Error("a rank of an allreduce knows of an arrival")
	}
}

// Rank 1 hears of rank 0 while it waits for rank 2 to take a message. It may have sent
// the message before, so rank 2 does not know of rank 0.
func TestARankOfABarrierTellsNothingThatItHearsInTheSameStep(t *testing.T) {
	r := replayed(t, parse(t, `
schedule barrier relayed
ranks 4
blocks 0
rank 0
  step
    send in 0..0 to 1
rank 1
  step
    send in 0..0 to 2
    recv out 0..0 from 0
rank 2
  step
    send in 0..0 to 3
  step
    recv out 0..0 from 1
rank 3
  step
    recv out 0..0 from 2
`), 2)
	if !r.Knows(1, 0) || !r.Knows(2, 1) || r.Knows(2, 0) {
		t.Errorf("1 of 0, 2 of 1, 2 of 0: %v, %v, %v, want true, true, false", r.Knows(1, 0), r.Knows(2, 1), r.Knows(2, 0))
	}
}
