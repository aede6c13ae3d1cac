package shm

import (
	"errors"
	"fmt"

	"github.com/chorale-go/chorale/transport"
)

// fail ends this endpoint's part in the job: every peer is told why, and every
// Exchange in progress returns err.
func (e *Endpoint) fail(err error) {
	if e.err != nil {
		return
	}
	e.err = err
	e.writeLast()
	for i := range e.links {
		l := &e.links[i]
		l.posted, l.flows = nil, nil
		if i != e.cfg.Rank {
			l.seat.wake(l.seat.status.Load())
		}
	}
	for _, o := range e.ops {
		o.finish(err)
	}
	e.moved = true
	e.nudge()
}

// writeLast leaves word of how this endpoint's part has ended. Where it did so
// because of what a peer has called, that peer is to know both calls.
func (e *Endpoint) writeLast() {
	r := &e.seat.last
	stage, text := given, e.err.Error()
	r.peer = -1
	var m *transport.MismatchError
	switch {
	case e.err == transport.ErrClosed:
		stage, text = left, ""
		if e.last.Call != "" {
			text = fmt.Sprintf("its last call was call %d, %q", e.last.Sequence, e.last.Call)
		}
	case errors.As(e.err, &m) && len(m.Mine.Call)+len(m.Theirs.Call)+len(text) <= lastMost:
		r.peer, r.context = int32(m.Peer), m.Mine.Context
		r.mine, r.theirs = m.Mine.Sequence, m.Theirs.Sequence
		r.cut, r.end = uint32(len(m.Mine.Call)), uint32(len(m.Mine.Call)+len(m.Theirs.Call))
		text = m.Mine.Call + m.Theirs.Call + text
	}
	r.size = uint32(copy(r.text[:], text))
	e.seat.status.Store(stage)
}

// part reads a peer's last word, and ends the link.
func (l *link) part() {
	r := &l.seat.last
	rank := l.e.cfg.Rank
	text := string(r.text[:min(r.size, lastMost)])
	if l.seat.stage() == left {
		l.end(&transport.PeerError{Peer: l.peer, Err: transport.ErrLeft, Reason: text})
		return
	}
	if r.peer < 0 || r.cut > r.end || int(r.end) > len(text) {
		l.end(&transport.PeerError{Peer: l.peer, Err: transport.ErrAborted, Reason: text})
		return
	}
	m := &transport.MismatchError{
		Rank: rank, Peer: l.peer,
		Mine:   transport.Signature{Context: r.context, Sequence: r.theirs, Call: text[r.cut:r.end]},
		Theirs: transport.Signature{Context: r.context, Sequence: r.mine, Call: text[:r.cut]},
	}
	if int(r.peer) != rank {
		l.end(&transport.PeerError{Peer: l.peer, Err: transport.ErrAborted, Reason: text[r.end:]})
		return
	}
	if o := l.e.within(r.context); o != nil && o.sig == m.Mine {
		l.e.fail(m)
	}
	l.end(m)
}

// seeParting ends the link if the peer has gone.
func (l *link) seeParting() {
	if l.err == nil && l.e.err == nil && l.seat.stage() >= left {
		l.part()
	}
}

// seePartings looks at all peers.
func (e *Endpoint) seePartings() {
	e.partings = false
	for i := range e.links {
		if i != e.cfg.Rank {
			e.links[i].seeParting()
		}
	}
}

// end notes that the peer has gone, and why. What it has sent is still there.
func (l *link) end(err error) {
	if l.err != nil {
		return
	}
	l.err = err
	l.e.moved = true
	l.noMail()
	l.fate()
}

// fate fails the endpoint if somebody waits for a peer that has gone: for what it
// has not sent, or for it to take what was sent to it.
func (l *link) fate() {
	if l.err == nil || l.e.err != nil {
		return
	}
	l.hear() // what the peer has sent was there before it went
	for _, o := range l.e.ops {
		if l.e.err == nil && !o.over && o.needs(l) {
			l.e.fail(l.err)
		}
	}
}
