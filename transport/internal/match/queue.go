package match

import "slices"

// A Queue matches the messages of steps from one peer with receives.
type Queue struct {
	posted     []*Recv    // receives whose message has not arrived, in order
	unexpected []*Message // messages whose receive was not there, in order
}

// A Message is an unexpected message of a step, in memory of its own.
type Message struct {
	Header
	Data []byte // what has arrived, or where it goes
	Got  int    // bytes that have arrived
}

// Complete reports whether the whole message has arrived.
func (m *Message) Complete() bool { return m.Got == m.Size }

// Post adds the receives of a step from the queue's peer.
func (q *Queue) Post(r *Recv) { q.posted = append(q.posted, r) }

// Idle reports whether no receive waits for a message of the peer.
func (q *Queue) Idle() bool { return len(q.posted) == 0 }

// Receives returns the receives that wait for a message of the peer, in order.
func (q *Queue) Receives() []*Recv { return q.posted }

// Posted returns the first receive of a context that waits for a message, or nil.
func (q *Queue) Posted(context uint32) *Recv {
	for _, r := range q.posted {
		if r.Step.Context == context {
			return r
		}
	}
	return nil
}

// PostedElsewhere reports whether a receive of another context waits for a message.
func (q *Queue) PostedElsewhere(context uint32) bool {
	for _, r := range q.posted {
		if r.Step.Context != context {
			return true
		}
	}
	return false
}

// Unpost removes a receive whose message has arrived.
func (q *Queue) Unpost(r *Recv) {
	i := 0
	if q.posted[0] != r {
		i = slices.Index(q.posted, r)
	}
	n := i + copy(q.posted[i:], q.posted[i+1:])
	q.posted[n] = nil
	q.posted = q.posted[:n]
}

// Cancel removes the receives of a step.
func (q *Queue) Cancel(s *Step) {
	q.posted = slices.DeleteFunc(q.posted, func(r *Recv) bool { return r.Step == s })
}

// CancelAll removes all receives.
func (q *Queue) CancelAll() { q.posted = nil }

// Complete notes that a receive, which is no longer posted, has its whole message.
func (q *Queue) Complete(r *Recv) { r.complete() }

// Enqueue adds an unexpected message.
func (q *Queue) Enqueue(m *Message) { q.unexpected = append(q.unexpected, m) }

// First returns the first unexpected message, or nil.
func (q *Queue) First() *Message {
	if len(q.unexpected) == 0 {
		return nil
	}
	return q.unexpected[0]
}

// FirstIn returns the first unexpected message of a context, or nil.
func (q *Queue) FirstIn(context uint32) *Message {
	for _, m := range q.unexpected {
		if m.Context == context {
			return m
		}
	}
	return nil
}

// MatchUnexpected finds an unexpected message and the receive that it belongs to.
// Its verdict is Unexpected where there is none.
func (q *Queue) MatchUnexpected() (Verdict, *Message, *Recv) {
	for _, m := range q.unexpected {
		r := q.Posted(m.Context)
		if r == nil || q.FirstIn(m.Context) != m {
			continue
		}
		switch {
		case !m.Same(&r.Step.Call):
			return Mismatch, m, r
		case m.Size != len(r.Into):
			return WrongSize, m, r
		case !r.HeldBack && m.Complete():
			return Deliver, m, r
		}
	}
	return Unexpected, nil, nil
}

// Deliver does with an unexpected message what its receive says, and completes the
// receive.
func (q *Queue) Deliver(m *Message, r *Recv) {
	Land(r.Recv, m.Data)
	i := slices.Index(q.unexpected, m)
	q.unexpected = slices.Delete(q.unexpected, i, i+1)
	q.Unpost(r)
	r.complete()
}

// Release drops the complete unexpected messages of a context.
func (q *Queue) Release(context uint32) {
	q.unexpected = slices.DeleteFunc(q.unexpected, func(m *Message) bool { return m.Context == context && m.Complete() })
}
