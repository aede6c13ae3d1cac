package deadlock

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chorale-go/chorale/transport"
)

func in(context, sequence uint32, peers ...int) transport.Stall {
	return transport.Stall{Signature: transport.Signature{Context: context, Sequence: sequence, Call: "barrier"}, Peers: peers}
}

func forMessage(tag int, peers ...int) transport.Stall {
	return transport.Stall{Tag: tag, Peers: peers}
}

func TestRanksThatWaitForEachOtherInDifferentCallsAreADeadlock(t *testing.T) {
	const a, b, c = 1 << transport.ContextBits, 2 << transport.ContextBits, 3 << transport.ContextBits
	for name, test := range map[string]struct {
		stalls [][]transport.Stall
		want   string // the ranks of the deadlock
	}{
		"two ranks, two communicators in swapped order": {
			[][]transport.Stall{{in(a, 0, 1)}, {in(b, 0, 0)}}, "0 1"},
		"three ranks in a ring": {
			[][]transport.Stall{{in(a, 0, 1)}, {in(b, 0, 2)}, {in(c, 0, 0)}}, "0 1 2"},
		"a rank that waits for a deadlock is not in its cycle": {
			[][]transport.Stall{{in(c, 0, 1)}, {in(a, 0, 2)}, {in(b, 0, 1)}}, "1 2"},
		"one of several peers": {
			[][]transport.Stall{{in(a, 0, 1, 2, 3)}, nil, {in(b, 0, 0)}, nil}, "0 2"},
		"a message and a call": {
			[][]transport.Stall{{forMessage(3, 1)}, {in(a, 0, 0)}}, "0 1"},
		"two messages": {
			[][]transport.Stall{{forMessage(3, 1)}, {forMessage(3, 0)}}, "0 1"},
		"all are in one call, whose messages are on their way": {
			[][]transport.Stall{{in(a, 0, 1)}, {in(a, 0, 0)}}, ""},
		"both are in both calls": {
			[][]transport.Stall{{in(a, 0, 1), in(b, 0, 1)}, {in(a, 0, 0), in(b, 0, 0)}}, ""},
		"the peer makes progress": {
			[][]transport.Stall{{in(a, 0, 1)}, nil}, ""},
		"another goroutine of the peer waits for a rank that makes progress": {
			[][]transport.Stall{{in(a, 0, 1)}, {in(b, 0, 0), in(c, 0, 2)}, nil}, ""},
		"another goroutine of the peer waits for any rank": {
			[][]transport.Stall{{in(a, 0, 1)}, {in(b, 0, 0), forMessage(1)}}, ""},
		"the peer will leave the call that it is in": {
			[][]transport.Stall{{in(a, 0, 1)}, {in(b, 0, 2)}, {in(b, 0, 1)}}, ""},
		"a rank that the job does not have": {
			[][]transport.Stall{{in(a, 0, 7)}, {in(b, 0, 0)}}, ""},
		"nobody waits": {make([][]transport.Stall, 4), ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := Find(test.stalls)
			var ranks []string
			for i, w := range d {
				ranks = append(ranks, string(rune('0'+w.rank)))
				if next := d[(i+1)%len(d)].rank; w.peer != next {
					t.Errorf("rank %d waits for rank %d, and next is rank %d", w.rank, w.peer, next)
				}
			}
			if got := strings.Join(ranks, " "); got != test.want {
				t.Errorf("ranks %q are in a deadlock, want %q", got, test.want)
			}
		})
	}
}

func TestADeadlockSaysWhoWaitsForWhomInWhichCall(t *testing.T) {
	d := Find([][]transport.Stall{{in(5<<transport.ContextBits, 3, 1)}, {forMessage(transport.Any, 0)}})
	const want = `rank 0 waits for rank 1 in call 3 of communicator 5, "barrier"; rank 1 waits for rank 0 to send or receive a message of any tag`
	if got := d.String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// A rank that is stopped, or whose report is late, does not know what it waits for.
func TestARankThatReportsNothingIsInNoDeadlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const patience = 3 * time.Second
		f := NewFinder(2, patience)
		for range 3 {
			f.Record(1, []transport.Stall{forMessage(0, 0)})
			time.Sleep(patience / 3)
		}
		// Rank 1 is stopped, and the message is sent. Rank 0 waits for the answer.
		time.Sleep(patience / 3)
		for range 5 {
			if d := f.Record(0, []transport.Stall{forMessage(1, 1)}); d != nil {
				t.Fatalf("a deadlock: %v", d)
			}
			time.Sleep(patience / 3)
		}
		// Both wait, and say so.
		var found Cycle
		for range 3 {
			found = append(found, f.Record(1, []transport.Stall{forMessage(0, 0)})...)
			found = append(found, f.Record(0, []transport.Stall{forMessage(1, 1)})...)
			time.Sleep(patience / 3)
		}
		if len(found) != 2 {
			t.Errorf("found %v, want a deadlock of two ranks, once", found)
		}
	})
}
