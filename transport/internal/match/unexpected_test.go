package match

import (
	"slices"
	"testing"

	"github.com/chorale-go/chorale/transport"
)

// enqueue adds a whole message of a context and reports whether the context is to be
// held.
func enqueue(q *Queue, context uint32, size int) bool {
	return q.Enqueue(&Message{Header: Header{call(context, 1, "sum"), size}, Data: make([]byte, size), Got: size})
}

// receive receives the first message of a context, which has a size.
func receive(t *testing.T, q *Queue, context uint32, size int) {
	t.Helper()
	begin(q, call(context, 1, "sum"), size)
	v, m, r := q.MatchUnexpected()
	if v != Deliver {
		t.Fatalf("verdict %d", v)
	}
	q.Deliver(m, r)
}

// resumed returns the contexts that may be resumed, in order.
func resumed(q *Queue) (all []uint32) {
	for c, ok := q.Resume(); ok; c, ok = q.Resume() {
		all = append(all, c)
	}
	slices.Sort(all)
	return all
}

func checkResumed(t *testing.T, q *Queue, want ...uint32) {
	t.Helper()
	if got := resumed(q); !slices.Equal(got, want) {
		t.Errorf("resumed are %d, want %d", got, want)
	}
}

// A quarter of the bound, with what the message costs.
const quarter = transport.UnexpectedMax/4 - transport.MessageCost

func TestAContextIsHeldWhenTheBoundIsExceededAndUntilHalfOfItIsReceived(t *testing.T) {
	var q Queue
	for i := range 4 {
		if enqueue(&q, 1, quarter) {
			t.Errorf("message %d, which is within the bound, holds its context", i)
		}
	}
	if q.Held() != transport.UnexpectedMax {
		t.Errorf("%d bytes are held, want the bound", q.Held())
	}
	if !enqueue(&q, 1, 0) {
		t.Error("an empty message beyond the bound does not hold its context")
	}
	if enqueue(&q, 1, 1) {
		t.Error("a context is held twice")
	}
	receive(t, &q, 1, quarter)
	checkResumed(t, &q)
	receive(t, &q, 1, quarter)
	checkResumed(t, &q) // the two short ones are more than half of the bound
	receive(t, &q, 1, quarter)
	checkResumed(t, &q, 1)
	checkResumed(t, &q)
	if enqueue(&q, 1, quarter) || !enqueue(&q, 1, 3*quarter) {
		t.Error("after it was resumed, a context is held before the bound, or not at all")
	}
}

func TestEmptyUnexpectedMessagesAreBoundedToo(t *testing.T) {
	var q Queue
	for i := 0; !enqueue(&q, 1, 0); i++ {
		if i > transport.UnexpectedMax/transport.MessageCost {
			t.Fatal("no number of empty messages holds their context")
		}
	}
}

// What fills the bound is received last, as by a program that uses its communicators
// in that order.
func TestAContextMayResumeWhenAllThatHasArrivedThereIsReceived(t *testing.T) {
	var q Queue
	if !enqueue(&q, 1, transport.UnexpectedMax) || !enqueue(&q, 2, 10) || !enqueue(&q, 3, 10) || enqueue(&q, 3, 10) {
		t.Error("beyond the bound, not each context is held once")
	}
	receive(t, &q, 3, 10)
	checkResumed(t, &q)
	receive(t, &q, 3, 10)
	checkResumed(t, &q, 3)
	if !enqueue(&q, 3, 10) {
		t.Error("the context is not held again")
	}
	receive(t, &q, 1, transport.UnexpectedMax)
	checkResumed(t, &q, 1, 2, 3)
}

func TestAContextIsHeldAgainOnlyAfterThePeerWasToldToResume(t *testing.T) {
	var q Queue
	enqueue(&q, 1, transport.UnexpectedMax)
	receive(t, &q, 1, transport.UnexpectedMax)
	if enqueue(&q, 1, transport.UnexpectedMax) {
		t.Error("the peer, which has not resumed, is told again to hold")
	}
	checkResumed(t, &q)
	receive(t, &q, 1, transport.UnexpectedMax)
	checkResumed(t, &q, 1)
}

func TestALongMessageHoldsItsContextBeforeItHasArrived(t *testing.T) {
	var q Queue
	m := &Message{Header: Header{call(1, 1, "sum"), 1 << 40}}
	if !q.Enqueue(m) || q.Held() != transport.MessageCost {
		t.Errorf("%d bytes of a message that has only begun are held", q.Held())
	}
	if m.Got = 10; q.Held() != 10+transport.MessageCost {
		t.Errorf("%d bytes are held", q.Held())
	}
}

func TestLengthsThatNoMessageHasDoNotOverflow(t *testing.T) {
	var q Queue
	for context := range uint32(10) {
		if !q.Enqueue(&Message{Header: Header{call(context, 1, "sum"), 1<<63 - 1}}) {
			t.Errorf("context %d is not held", context)
		}
	}
	for context := range uint32(10) {
		q.Release(context)
	}
	if q.size != 0 || len(resumed(&q)) != 10 {
		t.Errorf("nothing is left, and counts %d", q.size)
	}
}

func TestARendezvousMessageCountsLittle(t *testing.T) {
	var q Queue
	m := &Message{Header: Header{call(1, 1, "sum"), 1 << 40}, Rendezvous: true}
	if q.Enqueue(m) || q.Held() != transport.MessageCost {
		t.Errorf("%d bytes of a message that is with its sender are held", q.Held())
	}
}

func TestAReceiveContinuesAMessageThatIsOnItsWay(t *testing.T) {
	var q Queue
	m := &Message{Header: Header{call(1, 1, "sum"), transport.UnexpectedMax}, Data: []byte("ab"), Got: 2}
	if !q.Enqueue(m) {
		t.Error("the context is not held")
	}
	s, owner := begin(&q, call(1, 1, "sum"), transport.UnexpectedMax)
	v, got, r := q.MatchUnexpected()
	if v != Continue || got != m || r != &s.Recvs[0] {
		t.Fatalf("verdict %d", v)
	}
	q.Continue(m, r)
	checkResumed(t, &q, 1)
	if q.First() != nil || q.Posted(1) != r || owner.completed != 0 || r.Got != 2 || string(r.Into[:2]) != "ab" {
		t.Errorf("the receive has %d bytes", r.Got)
	}
}

func TestAReleasedContextKeepsNothing(t *testing.T) {
	var q Queue
	coming := &Message{Header: Header{call(1, 1, "sum"), transport.UnexpectedMax}, Data: []byte("x"), Got: 1}
	enqueue(&q, 0, 1)
	enqueue(&q, 1, 1)
	q.Enqueue(coming)
	q.Release(1)
	q.Release(7)
	if q.FirstIn(1) != nil || q.FirstIn(0) == nil || !coming.Released {
		t.Errorf("the queue is %+v", q.contexts)
	}
	checkResumed(t, &q, 1)
}

func TestARevokedContextKeepsNothing(t *testing.T) {
	var q Queue
	for _, context := range []uint32{0, 1, 2, 1} {
		enqueue(&q, context, 1)
	}
	begin(&q, call(3, 1, "sum"), 1)
	kept, _ := begin(&q, call(4, 1, "sum"), 1)
	q.Revoke(func(context uint32) bool { return context%2 == 1 })
	if q.FirstIn(1) != nil || q.FirstIn(0) == nil || q.FirstIn(2) == nil {
		t.Errorf("the queue is %+v", q.contexts)
	}
	if q.Posted(3) != nil || q.Posted(4) != &kept.Recvs[0] {
		t.Errorf("%d receives are posted", len(q.Receives()))
	}
}

func TestAStepExcludesWhatItWillNotReceive(t *testing.T) {
	for name, c := range map[string]struct {
		theirs Call
		want   bool
	}{
		"an earlier call":             {call(1, 4, "sum"), true},
		"the same call":               {call(1, 5, "sum"), false},
		"a later call":                {call(1, 6, "max"), false},
		"another call of that number": {call(1, 5, "max"), true},
		"a call of another context":   {call(2, 4, "sum"), false},
	} {
		t.Run(name, func(t *testing.T) {
			var q, other Queue
			m := &Message{Header: Header{c.theirs, 0}}
			q.Enqueue(m)
			s, _ := begin(&other, call(1, 5, "sum"), 1)
			got, step := q.Excluded(calls{s})
			if c.want != (got == m) || c.want != (step == s) {
				t.Errorf("message %+v of step %+v", got, step)
			}
			begin(&q, call(1, 5, "sum"), 1) // then the message is compared with the receive
			if m, _ := q.Excluded(calls{s}); m != nil {
				t.Errorf("message %+v, although a receive is posted", m)
			}
		})
	}
}
