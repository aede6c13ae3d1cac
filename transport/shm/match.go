package shm

import (
	"slices"

	"github.com/chorale-go/chorale/transport"
)

// A message is one that was put aside.
type message struct {
	sig   transport.Signature // without its text
	call  uint32
	data  []byte
	got   int // bytes of data that have come
	whole bool
}

// differ fails the endpoint because the peer has called something else.
func (l *link) differ(o *op, theirs transport.Signature) {
	l.e.fail(&transport.MismatchError{Rank: l.e.cfg.Rank, Peer: l.peer, Mine: o.sig, Theirs: theirs})
}

// contradicts reports whether a frame belongs to another call of the same
// number.
func (o *op) contradicts(sequence, call uint32) bool {
	return sequence == o.sig.Sequence && call != o.call
}

// within returns the Exchange in progress in a context.
func (e *Endpoint) within(context uint32) *op {
	for _, o := range e.ops {
		if !o.over && !o.mail && o.sig.Context == context {
			return o
		}
	}
	return nil
}

// expects returns the first receive of a context that awaits a message.
func (l *link) expects(context uint32) *recv {
	for _, r := range l.posted {
		if r.op.sig.Context == context {
			return r
		}
	}
	return nil
}

// firstAside returns the first message of a context that was put aside.
func (l *link) firstAside(context uint32) *message {
	for _, m := range l.aside {
		if m.sig.Context == context {
			return m
		}
	}
	return nil
}

// putAside copies a message for which nobody waits yet.
func (l *link) putAside(s *slot, k kind) bool {
	if k == lent && l.asksEnough() {
		return false
	}
	m := &message{
		sig:  transport.Signature{Context: s.context, Sequence: s.sequence},
		call: uint32(s.call), data: make([]byte, s.total(k)),
	}
	l.aside = append(l.aside, m)
	f := flow{number: l.head + 1, keep: m}
	switch k {
	case data:
		m.got = copy(m.data, s.body[:s.size])
		m.whole = true
		l.take()
		return true
	case cast:
		m.got = copy(m.data, s.castBytes())
		m.whole = true
		l.takeCast()
		return true
	case lent:
		return l.borrow(f, s)
	}
	if !l.unpack(f, s) {
		return false
	}
	if !f.ended() {
		l.flows = append(l.flows, f)
	}
	return true
}

// handOver gives one message that was put aside to its receive. It returns
// false if there was none to give.
func (l *link) handOver() bool {
	for i, m := range l.aside {
		r := l.expects(m.sig.Context)
		if r == nil || l.firstAside(m.sig.Context) != m {
			continue
		}
		switch {
		case m.sig.Sequence != r.op.sig.Sequence || m.call != r.op.call:
			theirs := m.sig
			theirs.Call = l.seat.call(m.call)
			l.differ(r.op, theirs)
			return false
		case len(m.data) != len(r.Into):
			l.e.fail(&transport.SizeError{Peer: l.peer, Got: len(m.data), Want: len(r.Into)})
			return false
		case r.held || !m.whole:
			continue
		case r.Combine != nil && len(m.data) > 0:
			r.Combine(r.Into, r.Held, m.data)
		default:
			copy(r.Into, m.data)
		}
		l.aside = slices.Delete(l.aside, i, i+1)
		l.unpost(r)
		l.blocked = false // the frame at the head may be next
		l.e.moved = true
		r.complete()
		return true
	}
	return false
}

// unread returns the call of a message that nobody has received.
func (l *link) unread() (sig transport.Signature, ok bool) {
	if len(l.aside) > 0 {
		sig = l.aside[0].sig
		sig.Call = l.seat.call(l.aside[0].call)
		return sig, true
	}
	if s, k := l.next(); s != nil && k.begins() {
		return l.signature(s), true
	}
	return sig, false
}
