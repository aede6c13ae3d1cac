package match

import (
	"fmt"
	"testing"

	"github.com/chorale-go/chorale/transport"
)

// A recorder is the owner of a step, and notes what it is told.
type recorder struct {
	completed int
	unblocked []int
}

func (r *recorder) Complete(n int)   { r.completed += n }
func (r *recorder) Unblock(peer int) { r.unblocked = append(r.unblocked, peer) }

// calls are the steps in progress.
type calls []*Step

func (c calls) IsRevoked(uint32) bool { return false }

func (c calls) StepIn(context uint32) *Step {
	for _, s := range c {
		if s.Context == context {
			return s
		}
	}
	return nil
}

func call(context, sequence uint32, text string) Call {
	return Call{Signature: transport.Signature{Context: context, Sequence: sequence, Call: text}}
}

// begin starts a step with receives of so many bytes from rank 1, and posts them.
func begin(q *Queue, c Call, sizes ...int) (*Step, *recorder) {
	recvs := make([]transport.Recv, len(sizes))
	for i, n := range sizes {
		recvs[i] = transport.Recv{From: 1, Into: make([]byte, n)}
	}
	return start(q, c, recvs)
}

func start(q *Queue, c Call, recvs []transport.Recv) (*Step, *recorder) {
	s, owner := new(Step), new(recorder)
	s.Start(owner, c, recvs)
	for i := range s.Recvs {
		q.Post(&s.Recvs[i])
	}
	return s, owner
}

func TestAMessageGoesToTheReceiveOfItsCall(t *testing.T) {
	for name, c := range map[string]struct {
		mine   Call
		posted []int // the sizes of the receives from the message's sender
		header Header
		want   Verdict
	}{
		"the call of the receive":                 {call(1, 5, "sum"), []int{8}, Header{call(1, 5, "sum"), 8}, Deliver},
		"an empty message":                        {call(1, 5, "sum"), []int{0}, Header{call(1, 5, "sum"), 0}, Deliver},
		"the first of two receives":               {call(1, 5, "sum"), []int{8, 4}, Header{call(1, 5, "sum"), 8}, Deliver},
		"another text":                            {call(1, 5, "sum"), []int{8}, Header{call(1, 5, "max"), 8}, Mismatch},
		"a later call, while one is received":     {call(1, 5, "sum"), []int{8}, Header{call(1, 6, "sum"), 8}, Mismatch},
		"an earlier call, while one is received":  {call(1, 5, "sum"), []int{8}, Header{call(1, 4, "sum"), 8}, Mismatch},
		"the other length, in another call":       {call(1, 5, "sum"), []int{8}, Header{call(1, 5, "max"), 4}, Mismatch},
		"a message that is shorter":               {call(1, 5, "sum"), []int{8}, Header{call(1, 5, "sum"), 7}, WrongSize},
		"a message that is longer":                {call(1, 5, "sum"), []int{8}, Header{call(1, 5, "sum"), 9}, WrongSize},
		"a context without a step":                {call(1, 5, "sum"), []int{8}, Header{call(2, 5, "sum"), 8}, Unexpected},
		"a later call, before its step":           {call(1, 5, "sum"), nil, Header{call(1, 6, "sum"), 8}, Unexpected},
		"a message of the call, beyond its step":  {call(1, 5, "sum"), nil, Header{call(1, 5, "sum"), 8}, Unexpected},
		"an earlier call, which is over":          {call(1, 5, "sum"), nil, Header{call(1, 4, "sum"), 8}, Mismatch},
		"the same call with another text":         {call(1, 5, "sum"), nil, Header{call(1, 5, "max"), 8}, Mismatch},
		"a later call, when numbers have wrapped": {call(1, 1<<32-1, "sum"), nil, Header{call(1, 0, "sum"), 8}, Unexpected},
		"an earlier call from before they did":    {call(1, 0, "sum"), nil, Header{call(1, 1<<32-1, "sum"), 8}, Mismatch},
	} {
		t.Run(name, func(t *testing.T) {
			var q Queue
			s, _ := begin(&q, c.mine, c.posted...)
			verdict, r, about := q.Match(&c.header, calls{s})
			if verdict != c.want {
				t.Fatalf("verdict %d, want %d", verdict, c.want)
			}
			if want := verdict == Deliver || verdict == WrongSize; want != (r != nil) || want && r != &s.Recvs[0] {
				t.Errorf("it is for receive %+v", r)
			}
			if want := verdict != Unexpected; want != (about == s) {
				t.Errorf("it is about step %+v", about)
			}
		})
	}
}

func TestCallsAreComparedByTheirHashesWhereMessagesCarryThem(t *testing.T) {
	mine := Call{Signature: transport.Signature{Sequence: 5, Call: "sum"}, Hash: 7}
	theirs := Call{Signature: transport.Signature{Sequence: 5}, Hash: 7}
	if !mine.Same(&theirs) || mine.Contradicts(&theirs) {
		t.Error("equal hashes differ")
	}
	theirs.Hash = 8
	if mine.Same(&theirs) || !mine.Contradicts(&theirs) {
		t.Error("other hashes are equal")
	}
	theirs.Sequence = 6
	if mine.Contradicts(&theirs) {
		t.Error("another call contradicts this one")
	}
}

func TestANumberIsBeforeTheNextHalfOfAllNumbers(t *testing.T) {
	for _, a := range []uint32{0, 1, 1<<31 - 1, 1 << 31, 1<<32 - 1} {
		for _, d := range []uint32{1, 2, 1<<31 - 1} {
			if !Before(a, a+d) || Before(a+d, a) {
				t.Errorf("%d is not before %d", a, a+d)
			}
		}
		if Before(a, a) {
			t.Errorf("%d is before itself", a)
		}
	}
}

func TestAReceiveTakesNoMessageBeforeAnUnexpectedOneOfItsContext(t *testing.T) {
	var q Queue
	q.Enqueue(&Message{Header: Header{call(1, 5, "sum"), 4}, Data: []byte("early")[:4], Got: 4})
	s, _ := begin(&q, call(1, 5, "sum"), 4, 4)
	if v, _, _ := q.Match(&Header{call(1, 5, "sum"), 4}, calls{s}); v != Unexpected {
		t.Errorf("verdict %d: it overtakes the message that arrived before", v)
	}
	other, _ := begin(&q, call(2, 1, "max"), 4)
	if v, r, _ := q.Match(&Header{call(2, 1, "max"), 4}, calls{s, other}); v != Deliver || r != &other.Recvs[0] {
		t.Errorf("verdict %d: another context waits", v)
	}
}

func TestUnexpectedMessagesAreDeliveredInTheOrderOfTheirContext(t *testing.T) {
	var q Queue
	for _, m := range []struct {
		context uint32
		text    string
	}{{1, "a"}, {2, "b"}, {1, "c"}, {2, "d"}} {
		q.Enqueue(&Message{Header: Header{call(m.context, 1, "sum"), 1}, Data: []byte(m.text), Got: 1})
	}
	if q.First() == nil || string(q.First().Data) != "a" || string(q.FirstIn(2).Data) != "b" || q.FirstIn(3) != nil {
		t.Errorf("the queue is %+v", q.contexts)
	}
	if v, _, _ := q.MatchUnexpected(); v != Unexpected {
		t.Error("a message is delivered to no receive")
	}
	var got string
	for _, context := range []uint32{2, 1} {
		s, owner := begin(&q, call(context, 1, "sum"), 1, 1)
		for {
			v, m, r := q.MatchUnexpected()
			if v != Deliver {
				break
			}
			q.Deliver(m, r)
		}
		if owner.completed != 2 || !q.Idle() {
			t.Errorf("context %d: %d messages are complete", context, owner.completed)
		}
		for i := range s.Recvs {
			got += string(s.Recvs[i].Into)
		}
	}
	if got != "bdac" || q.First() != nil {
		t.Errorf("received %q, want %q", got, "bdac")
	}
}

func TestAnUnexpectedMessageIsHeldToTheSameRules(t *testing.T) {
	for name, c := range map[string]struct {
		m    Message
		want Verdict
	}{
		"right":                           {Message{Header: Header{call(1, 5, "sum"), 2}, Data: []byte("ab"), Got: 2}, Deliver},
		"another call":                    {Message{Header: Header{call(1, 5, "max"), 2}, Data: []byte("ab"), Got: 2}, Mismatch},
		"another number":                  {Message{Header: Header{call(1, 4, "sum"), 2}, Data: []byte("ab"), Got: 2}, Mismatch},
		"another length":                  {Message{Header: Header{call(1, 5, "sum"), 1}, Data: []byte("a"), Got: 1}, WrongSize},
		"not all of it has arrived":       {Message{Header: Header{call(1, 5, "sum"), 2}, Data: []byte("ab"), Got: 1}, Continue},
		"another length, and on its way":  {Message{Header: Header{call(1, 5, "sum"), 3}, Data: []byte("abc"), Got: 1}, WrongSize},
		"a call that is not yet received": {Message{Header: Header{call(2, 5, "sum"), 2}, Data: []byte("ab"), Got: 2}, Unexpected},
	} {
		t.Run(name, func(t *testing.T) {
			var q Queue
			q.Enqueue(&c.m)
			s, _ := begin(&q, call(1, 5, "sum"), 2)
			v, m, r := q.MatchUnexpected()
			if v != c.want {
				t.Fatalf("verdict %d, want %d", v, c.want)
			}
			if v != Unexpected && (m != &c.m || r != &s.Recvs[0]) {
				t.Errorf("message %+v for receive %+v", m, r)
			}
		})
	}
}

func TestNoUnexpectedMessageOvertakesOneThatIsOnItsWay(t *testing.T) {
	var q Queue
	first := &Message{Header: Header{call(1, 1, "sum"), 2}, Data: []byte("ab"), Got: 1}
	second := &Message{Header: Header{call(1, 1, "sum"), 2}, Data: []byte("cd"), Got: 2}
	q.Enqueue(first)
	q.Enqueue(second)
	s, _ := begin(&q, call(1, 1, "sum"), 2, 2)
	if v, m, _ := q.MatchUnexpected(); v != Continue || m != first {
		t.Fatalf("verdict %d about %q", v, m.Data)
	}
	first.Got = 2
	for i, want := range []*Message{first, second} {
		v, m, r := q.MatchUnexpected()
		if v != Deliver || m != want || r != &s.Recvs[i] {
			t.Fatalf("message %d: verdict %d about %+v", i, v, m)
		}
		q.Deliver(m, r)
	}
}

// Receive 1 is ordered, 2 is not, and 3 is ordered again.
func TestAnOrderedReceiveWaitsForThoseBeforeIt(t *testing.T) {
	queues := make([]Queue, 5)
	s, owner := new(Step), new(recorder)
	recvs := make([]transport.Recv, 4)
	for i := range recvs {
		recvs[i] = transport.Recv{From: i + 1, Into: make([]byte, 1), Ordered: i%2 == 1}
	}
	c := call(1, 1, "sum")
	s.Start(owner, c, recvs)
	for i := range s.Recvs {
		queues[i+1].Post(&s.Recvs[i])
	}
	verdict := func(from int) Verdict {
		v, r, _ := queues[from].Match(&Header{c, 1}, calls{s})
		if v == Deliver {
			queues[from].Unpost(r)
			queues[from].Complete(r)
		}
		return v
	}
	for i, step := range []struct {
		from int
		want Verdict
		told string // the peers that may go on, so far
	}{
		{2, Unexpected, "[]"}, {4, Unexpected, "[]"}, {3, Deliver, "[]"}, {1, Deliver, "[2]"},
		{4, Unexpected, "[2]"}, {2, Deliver, "[2 4]"}, {4, Deliver, "[2 4]"},
	} {
		if v := verdict(step.from); v != step.want || fmt.Sprint(owner.unblocked) != step.told {
			t.Errorf("message %d, from %d: verdict %d, and peers %v may go on: want %d, %s", i, step.from, v, owner.unblocked, step.want, step.told)
		}
	}
	if owner.completed != 4 {
		t.Errorf("%d receives are complete", owner.completed)
	}
}

func TestTheFirstReceiveIsNeverHeldBack(t *testing.T) {
	var q Queue
	s, _ := start(&q, call(1, 1, "sum"), []transport.Recv{{From: 1, Into: make([]byte, 1), Ordered: true}})
	if v, _, _ := q.Match(&Header{s.Call, 1}, calls{s}); v != Deliver {
		t.Errorf("verdict %d", v)
	}
}

func TestACancelledStepLeavesTheReceivesOfOthers(t *testing.T) {
	var q Queue
	first, _ := begin(&q, call(1, 1, "sum"), 1, 2)
	second, _ := begin(&q, call(2, 1, "max"), 3)
	if !q.PostedElsewhere(1) || !q.PostedElsewhere(2) || len(q.Receives()) != 3 {
		t.Error("not all receives are posted")
	}
	q.Cancel(first)
	if q.Posted(1) != nil || q.Posted(2) != &second.Recvs[0] || q.PostedElsewhere(2) || q.Idle() {
		t.Errorf("posted are %+v", q.Receives())
	}
	q.CancelAll()
	if !q.Idle() || q.Posted(2) != nil {
		t.Error("a receive is left")
	}
}

func TestTheReceivesOfOneContextMayCompleteBeforeThoseOfAnother(t *testing.T) {
	var q Queue
	first, _ := begin(&q, call(1, 1, "sum"), 1)
	second, owner := begin(&q, call(2, 1, "max"), 1, 1)
	for i := range second.Recvs {
		r := q.Posted(2)
		if r != &second.Recvs[i] {
			t.Fatalf("receive %d of context 2 is %+v", i, r)
		}
		q.Unpost(r)
		q.Complete(r)
	}
	if owner.completed != 2 || q.Posted(2) != nil || q.Posted(1) != &first.Recvs[0] || second.FirstIncomplete(1) != nil || first.FirstIncomplete(1) != &first.Recvs[0] {
		t.Errorf("posted are %+v", q.Receives())
	}
}

func TestAStepThatIsResetHoldsNothingOfItsCaller(t *testing.T) {
	var q Queue
	s, _ := begin(&q, call(1, 1, "sum"), 1, 2)
	recvs := s.Recvs
	q.Cancel(s)
	s.Reset()
	for i := range recvs {
		if recvs[i].Recv != nil || recvs[i].Step != nil {
			t.Errorf("receive %d is %+v", i, recvs[i])
		}
	}
	if s.Operation != nil || s.Call != (Call{}) || len(s.Recvs) != 0 {
		t.Errorf("the step is %+v", s)
	}
}
