package stall

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chorale-go/chorale/transport"
)

const stacks = `goroutine 1 [running]:
main.work(0x3)
	/home/x/train.go:70 +0x1d
main.main()
	/home/x/train.go:12 +0x25

goroutine 7 [chan receive, 2 minutes]:
github.com/chorale-go/chorale/transport/internal/progress.(*Op).Await(0xc000123400)
	/go/op.go:90 +0x11
github.com/chorale-go/chorale/transport/tcp.(*Endpoint).Exchange(0xc000010000, {0x1, 0x2}, {...})
	/go/endpoint.go:90 +0x11
github.com/chorale-go/chorale.AllReduce[...](...)
	/go/collectives.go:20 +0x11
example.com/train.step({0xc0001?, 0x8})
	/home/x/step.go:88 +0x9
created by main.main in goroutine 1
	/home/x/train.go:11 +0x25

goroutine 8 [sync.Mutex.Lock]:
github.com/chorale-go/chorale/transport/internal/progress.(*Op).Await(0xc000123500)
	/go/op.go:90 +0x11
sync.(*WaitGroup).Go.func1()
	/go/waitgroup.go:1 +0x1
created by sync.(*WaitGroup).Go in goroutine 7
	/go/waitgroup.go:2 +0x1
`

func waitOf(operation uintptr, peers ...int) transport.Stall {
	return transport.Stall{
		Signature: transport.Signature{Sequence: 812, Call: "allreduce"}, Peers: peers, Step: 1, Operation: operation,
	}
}

func TestAWaitIsJoinedToTheGoroutineThatShowsItsOperation(t *testing.T) {
	for name, operation := range map[string]uintptr{"of the program": 0xc000123400, "of the library": 0xc000123500} {
		stalls := [][]transport.Stall{{waitOf(operation, 3)}}
		got := look(stalls, stalls, parseStacks(stacks), nil)[0]
		want := Call{"AllReduce", "x/step.go:88"}
		if len(got.Waits) != 1 || got.Waits[0].Call != want {
			t.Errorf("a goroutine %s: %+v, want one wait in %v", name, got.Waits, want)
		}
		frames := []Stack{{"running", []Frame{{"main.work", "/home/x/train.go:70"}, {"main.main", "/home/x/train.go:12"}}}}
		if diff := cmp.Diff(frames, got.Goroutines); diff != "" {
			t.Errorf("a goroutine %s: the others (-want +got):\n%s", name, diff)
		}
	}
}

func TestACallThatIsNotInBothLooksMakesProgress(t *testing.T) {
	got := look([][]transport.Stall{{waitOf(1, 3)}}, [][]transport.Stall{{{Signature: transport.Signature{Sequence: 813, Call: "allreduce"}}}}, nil, nil)[0]
	if !got.Moves || len(got.Waits) > 0 {
		t.Errorf("%+v, want a rank that makes progress", got)
	}
}

// in returns a rank that waits in a call.
func in(communicator, sequence uint32, peers ...int) Rank {
	return Rank{Waits: []Wait{{Context: communicator << transport.ContextBits, Sequence: sequence, Text: "barrier", Peers: peers, Call: Call{"Barrier", "a.go:1"}}}}
}

func TestTheCauseIsTheRankThatTheOthersWaitFor(t *testing.T) {
	idle := Rank{Goroutines: []Stack{{"select", nil}}}
	busy := Rank{Goroutines: []Stack{{"select", nil}, {"running", nil}}}
	for name, test := range map[string]struct {
		ranks  []Rank
		absent map[int]Absence
		want   string
	}{
		"nobody waits":               {[]Rank{idle, busy}, nil, "no rank waits for another one"},
		"one rank alone":             {[]Rank{idle}, nil, "no rank waits for another one"},
		"a rank that computes":       {[]Rank{in(0, 3, 2), in(0, 3, 0), busy}, nil, "rank 2 is the likely cause: it is in no call: it computes, and has not made call 3 of communicator 0; rank 0 waits for it"},
		"a rank that sleeps":         {[]Rank{in(0, 3, 1), idle}, nil, "rank 1 is the likely cause: it is in no call: it waits for something else (select), and has not made call 3 of communicator 0; rank 0 waits for it"},
		"a rank that is stopped":     {[]Rank{in(0, 3, 1, 2), busy, {}}, map[int]Absence{2: Stopped}, "rank 2 is the likely cause: it is stopped: SIGCONT lets it go on; rank 0 waits for it"},
		"a rank that has not joined": {[]Rank{in(0, 3, 1), {}}, map[int]Absence{1: NotJoined}, "rank 1 is the likely cause: it has not joined the job; rank 0 waits for it"},
		"a rank that has ended":      {[]Rank{in(0, 3, 1), {}}, map[int]Absence{1: Dead}, "rank 1 is the likely cause: it has ended: exited with status 3; rank 0 waits for it"},
		"two ranks":                  {[]Rank{in(0, 3, 1, 2), busy, busy}, nil, "ranks 1–2 are the likely cause: rank 1 is in no call: it computes, and has not made call 3 of communicator 0; rank 0 waits for it"},
		"a rank at an earlier call": {[]Rank{in(0, 3, 1), in(1, 0, 2), busy}, nil,
			"rank 2 is the likely cause: it is in no call: it computes, and has not made call 0 of communicator 1; rank 1 waits for it"},
		"a cycle":                        {[]Rank{in(1, 0, 1), in(2, 0, 0)}, nil, "these ranks wait for each other, "},
		"a message that nobody sends":    {[]Rank{{Waits: []Wait{{Tag: 7}}}, idle}, nil, "rank 0: no rank sends the message that is waited for"},
		"messages that are on their way": {[]Rank{in(0, 3, 1), in(0, 3, 0)}, nil, "all ranks that are waited for wait as well"},
		"a message of oneself": {[]Rank{{Waits: []Wait{{Peers: []int{0}}}}, in(0, 3, 0)}, nil,
			"rank 0 waits for itself, and cannot go on unless another goroutine of its makes a call: want SendRecv, StartSend or StartRecv"},
		"a peer that the job has not": {[]Rank{in(0, 3, 9), idle}, nil, "all ranks that are waited for wait as well"},
	} {
		r := New(len(test.ranks))
		copy(r.Ranks, test.ranks)
		for rank, a := range test.absent {
			r.Absent[rank], r.Details[rank] = a, "exited with status 3"
		}
		if got := r.Cause(); !strings.HasPrefix(got, test.want) {
			t.Errorf("%s:\n got %s\nwant %s", name, got, test.want)
		}
		if !strings.HasSuffix(r.Text(), r.Cause()) {
			t.Errorf("%s: the text does not end in the cause:\n%s", name, r.Text())
		}
	}
}

// A deadlock that a second look does not refute is one, whoever does not answer by then.
func TestALaterReportStrikesOutTheWaitsThatAreOver(t *testing.T) {
	waits := func() []Rank { return []Rank{in(1, 0, 1), in(2, 0, 0)} }
	for name, test := range map[string]struct {
		ranks  []Rank
		absent Absence // of rank 1
		want   int     // ranks of the deadlock
	}{
		"both wait as before":       {waits(), Present, 2},
		"rank 1 waits in a new one": {[]Rank{in(1, 0, 1), in(2, 1, 0)}, Present, 0},
		"rank 1 does not answer":    {[]Rank{in(1, 0, 1), {}}, NoAnswer, 2},
		"rank 1 has ended":          {[]Rank{in(1, 0, 1), {}}, Dead, 0},
	} {
		r, later := New(2), New(2)
		copy(r.Ranks, waits())
		copy(later.Ranks, test.ranks)
		later.Absent[1] = test.absent
		r.Confirm(later)
		if got := len(r.Deadlock()); got != test.want {
			t.Errorf("%s: a deadlock of %d ranks, want %d: %s", name, got, test.want, r.Text())
		}
	}
}

func TestRanksOfALargeJobAreGrouped(t *testing.T) {
	r := New(64)
	for rank := range r.Ranks {
		r.Ranks[rank] = in(0, 812, 3)
	}
	r.Ranks[3] = Rank{Goroutines: []Stack{{"running", []Frame{{"main.main", "/x/main.go:3"}}}}}
	got := r.Text()
	if want := "\n  ranks 0–2, 4–63 wait in call 812 of communicator 0, \"barrier\", at a.go:1: rank 0 in step 1 for rank 3; "; !strings.Contains(got, want) {
		t.Errorf("got\n%s\nwant%s", got, want)
	}
	if n := strings.Count(got, "\n"); n > 8 {
		t.Errorf("%d lines:\n%s", n, got)
	}
}

func TestAWaitIsDueOnceAndALaterOneAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const patience = 3 * time.Second
		tracker := NewTracker(2, patience)
		due := 0
		say := func(looks int, stalls ...transport.Stall) {
			for range looks {
				time.Sleep(patience / 3)
				if tracker.Record(0, stalls) {
					due++
				}
			}
		}
		say(2, waitOf(1, 1))
		if due != 0 {
			t.Errorf("due after two thirds of the patience")
		}
		say(10, waitOf(1, 1))
		if due != 1 {
			t.Errorf("due %d times, want once", due)
		}
		say(1)
		later := waitOf(1, 1)
		later.Signature.Sequence++
		say(10, later)
		if due != 2 {
			t.Errorf("due %d times, want twice", due)
		}
		last := later
		last.Signature.Sequence++
		tracker.Cover(0, []Wait{newWait(last)})
		say(10, last)
		if due != 2 {
			t.Errorf("due %d times with a wait that was reported", due)
		}
	})
}

// While ranks are asked for a report, another one may say for the first time that it waits.
func TestAWaitThatAReportHasSaidIsNotDueAlthoughItWasRecordedBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const patience = 3 * time.Second
		tracker := NewTracker(2, patience)
		wait := waitOf(1, 1)
		for look := range 10 {
			time.Sleep(patience / 3)
			if tracker.Record(0, []transport.Stall{wait}) {
				t.Fatalf("due at look %d with a wait that was reported", look)
			}
			if look == 0 {
				tracker.Cover(0, []Wait{newWait(wait)})
			}
		}
	})
}
