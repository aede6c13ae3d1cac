package match

import "slices"

// A Queue matches the messages of steps from one peer with receives.
type Queue struct {
	posted []*Recv // receives whose message has not arrived, in order
	unexpected
	call string // the text of the last call, so that equal ones share memory
}

// A Message is an unexpected message of a step, in memory of its own.
type Message struct {
	Header
	Data       []byte // what has arrived, or where it goes
	Got        int    // bytes that have arrived
	Rendezvous bool   // the contents stay with the sender until a receive takes them
	Released   bool   // its context was released: what is still to come is thrown away
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

// Revoke removes the receives of the contexts that are revoked, and drops the unexpected
// messages there.
func (q *Queue) Revoke(revoked func(context uint32) bool) {
	q.posted = slices.DeleteFunc(q.posted, func(r *Recv) bool { return revoked(r.Step.Context) })
	for i := 0; i < len(q.contexts); {
		if context := q.contexts[i].context; revoked(context) {
			q.Release(context)
		} else {
			i++
		}
	}
}

// CancelAll removes all receives.
func (q *Queue) CancelAll() { q.posted = nil }

// Complete notes that a receive, which is no longer posted, has its whole message.
func (q *Queue) Complete(r *Recv) { r.complete() }

// MatchUnexpected finds an unexpected message and the receive that it belongs to.
// Its verdict is Deliver or Continue if the receive may take the message, and
// Unexpected where there is none.
func (q *Queue) MatchUnexpected() (Verdict, *Message, *Recv) {
	for i := range q.contexts {
		m := q.contexts[i].messages[0]
		r := q.Posted(m.Context)
		switch {
		case r == nil:
		case !m.Same(&r.Step.Call):
			return Mismatch, m, r
		case m.Size != len(r.Into):
			return WrongSize, m, r
		case r.HeldBack:
		case m.Complete():
			return Deliver, m, r
		default:
			return Continue, m, r
		}
	}
	return Unexpected, nil, nil
}

// Excluded returns an unexpected message that no receive will ever take, because of a
// step in progress that receives nothing from the peer: the message belongs to an
// earlier call, or to another call of the same number. It returns nil if there is none.
func (q *Queue) Excluded(steps Steps) (*Message, *Step) {
	for i := range q.contexts {
		m := q.contexts[i].messages[0]
		if s := steps.StepIn(m.Context); s != nil && s.excludes(&m.Call) && q.Posted(m.Context) == nil {
			return m, s
		}
	}
	return nil, nil
}

// Deliver does with a complete unexpected message what its receive says, and completes
// the receive.
func (q *Queue) Deliver(m *Message, r *Recv) {
	Land(r.Recv, m.Data)
	q.remove(m)
	q.Unpost(r)
	r.complete()
}

// Continue puts what has arrived of an unexpected message into its receive, which
// takes the rest of the message from here on. The receive stays posted.
func (q *Queue) Continue(m *Message, r *Recv) {
	if m.Got > 0 {
		r.Put(m.Data[:m.Got])
	}
	q.remove(m)
}
