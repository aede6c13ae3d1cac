package shm

import (
	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
	"github.com/chorale-go/chorale/transport/internal/progress"
)

// A rank that has waited for the stall timeout writes in its rank state which calls
// it waits in, and reads what the others have written. Of two ranks in different
// calls one is the second to do so, and finds the record of the first. So ranks
// learn of a mismatch also where neither reads what the other sends, or where all
// wait and none sends. Ranks that make progress pay nothing.

// checkStalls writes a stall record for each step in progress, reads those of the peers,
// and checks that the peers are alive.
func (e *Endpoint) checkStalls() {
	e.engine.Steps(func(o *progress.Op) { e.recordStall(&o.Step) })
	for i := range e.links {
		if i != e.cfg.Rank && !e.engine.Failed() {
			l := &e.links[i]
			l.in.headUnexpected = false
			l.in.rotation += admittedMax
			l.admit()
			l.poll() // it may begin with a mismatch
			l.compareStalls()
			l.checkCloses()
			l.checkAlive()
		}
	}
}

// recordStall writes a stall record for a step. The record of a step that does not
// wait any more is free for another.
func (e *Endpoint) recordStall(s *match.Step) {
	var free *stallRecord
	for i := range e.state.stalls {
		r := &e.state.stalls[i]
		used, context := r.used.Load() != 0, r.context.Load()
		if used && context == s.Context {
			free = r
			break
		}
		if free == nil && (!used || e.engine.StepIn(context) == nil) {
			free = r
		}
	}
	if free != nil {
		free.write(&s.Signature, s.Hash)
	}
}

// stalledIn returns the call in which the rank has last waited for long.
func (s *rankState) stalledIn(context uint32) (sequence, hash uint32, ok bool) {
	for i := range s.stalls {
		if sequence, hash, ok = s.stalls[i].read(context); ok {
			return sequence, hash, true
		}
	}
	return 0, 0, false
}

// compareStalls compares the steps in progress with the stall records of the peer, if they are
// of its communicators: one of other ranks may have the same number.
func (l *link) compareStalls() {
	e := l.e
	e.engine.Steps(func(o *progress.Op) {
		sequence, hash, ok := l.state.stalledIn(o.Context)
		if !ok || !e.engine.IsMember(o.Context, l.peer) {
			return
		}
		theirs := match.Call{Signature: transport.Signature{Context: o.Context, Sequence: sequence}, Hash: hash}
		// What the peer sent before it wrote the record has arrived by now.
		if o.Contradicts(&theirs) || match.Before(o.Sequence, sequence) && l.lacks(o) {
			e.engine.FailMismatch(&o.Step, l.peer, l.signature(&theirs))
		}
	})
}

// checkCloses fails the steps that wait for the peer, which lingers. All that it
// has sent in steps was there before.
func (l *link) checkCloses() {
	if l.err != nil || l.state.closes.Load() == 0 {
		return
	}
	l.e.engine.Steps(func(o *progress.Op) {
		if l.lacks(o) {
			l.e.engine.FailStep(&o.Step, &transport.PeerError{Peer: l.peer, Err: transport.ErrLeft, Reason: "it leaves as soon as its messages are received"})
		}
	})
}

// lacks reports whether a step waits for the peer.
func (l *link) lacks(o *progress.Op) bool {
	l.poll()
	return !o.Over() && l.blocks(o)
}

// checkAlive ends the link when two checks in a row find that the peer's process has
// ended without a termination notice. Between the two the launcher may report the
// reason.
func (l *link) checkAlive() {
	if l.err != nil || l.state.lifecycle() != joined {
		return
	}
	gone := l.processEnded()
	if gone && l.wasGone && l.state.lifecycle() == joined {
		l.hear()
		l.end(&transport.PeerError{Peer: l.peer, Err: transport.ErrLost, Reason: "its process has ended"})
	}
	l.wasGone = gone
}

// processEnded reports whether the peer's process has ended, as far as can be known.
func (l *link) processEnded() bool { return l.e.seg.own != nil && !rankLocked(l.e.seg.own, l.peer) }

// Stalls implements [transport.Endpoint].
func (e *Endpoint) Stalls() []transport.Stall {
	return e.engine.Stalls(func(o *progress.Op, peer int) bool { return peer != e.cfg.Rank && e.links[peer].blocks(o) })
}
