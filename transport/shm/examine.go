package shm

import "github.com/chorale-go/chorale/transport"

// A rank that waits for long says in its seat in which calls, and looks what the
// others have said. Of two ranks whose calls differ one is the second to do so,
// and finds the word of the first. So ranks learn that they have called
// different things even where neither reads what the other sends, or all wait
// and nobody sends at all, and nothing of it costs those that get on.

// examine does that for all Exchanges in progress, and looks whether those that
// they wait for live.
func (e *Endpoint) examine() {
	for _, o := range e.ops {
		if !o.over && !o.mail {
			e.seat.say(&o.sig, o.call, func(context uint32) bool { return e.within(context) != nil })
		}
	}
	for i := range e.links {
		if i != e.cfg.Rank && e.err == nil {
			l := &e.links[i]
			l.blocked = false
			l.hear() // it may begin with a mismatch
			l.compare()
			l.check()
		}
	}
}

// compare looks what the peer has said.
func (l *link) compare() {
	e := l.e
	for _, o := range e.ops {
		if e.err != nil || o.over || o.mail {
			continue
		}
		sequence, call, ok := l.seat.said(o.sig.Context)
		if !ok {
			continue
		}
		// What the peer sent before it said that is there by now.
		if o.contradicts(sequence, call) || before(o.sig.Sequence, sequence) && l.lacks(o) {
			l.differ(o, transport.Signature{Context: o.sig.Context, Sequence: sequence, Call: l.seat.call(call)})
		}
	}
}

// lacks reports whether the Exchange waits for the peer of a link.
func (l *link) lacks(o *op) bool {
	l.hear()
	return !o.over && o.needs(l)
}

// check ends the link when the peer's process has gone without a word. To be
// sure, it looks twice: whoever started the process may know more.
func (l *link) check() {
	if l.err != nil || l.seat.stage() != joined {
		return
	}
	gone := l.isEmpty()
	if gone && l.missing && l.seat.stage() == joined {
		l.end(&transport.PeerError{Peer: l.peer, Err: transport.ErrLost, Reason: "its process has ended"})
	}
	l.missing = gone
}

// isEmpty reports whether no process has the peer's seat any more, as far as can
// be known.
func (l *link) isEmpty() bool { return l.e.seg.own != nil && !seatTaken(l.e.seg.own, l.peer) }
