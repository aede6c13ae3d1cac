package inproc

import (
	"context"
	"time"

	"github.com/chorale-go/chorale/transport"
)

// hopeless says why what the stream waits for cannot come, if that is known.
func (s *stream) hopeless(ctx context.Context) error {
	if err := transport.Cause(ctx); err != nil {
		return err
	}
	for i := range s.recvs {
		// In this order: a peer posts before it goes.
		if l := s.recvs[i].link; l.from.wait.Load()&gone != 0 && l.next() == nil {
			return l.from.end.parting()
		}
	}
	for i := range s.posts {
		if to := s.posts[i].link.to; to.wait.Load()&gone != 0 {
			return to.end.parting()
		}
	}
	for _, l := range s.loans {
		if to := l.link.to; to.wait.Load()&gone != 0 && l.link.unclaimed(l.turn) {
			return to.end.parting()
		}
	}
	if s.late.Load() != 0 {
		return s.examine()
	}
	return nil
}

// A rank that sleeps for long is examined: it looks for ranks that are in
// another call than itself, among all that it has to do with, and leaves word
// in which call it is. Of two ranks whose calls differ one is the second to be
// examined, and finds the word of the first. So ranks learn that they have
// called different things even where neither reads what the other sends, or
// all wait and nobody sends at all, and nothing of it costs those that get on.

// Why a stream is to be examined.
const (
	rung  = 1 << iota // its alarm has rung
	poked             // a peer wants it
)

// arm sets the alarm for this step, unless it is set or has rung in it.
func (s *stream) arm() {
	if s.armed.Load() || s.armedIn == s.steps {
		return
	}
	s.late.And(^uint32(rung)) // in an earlier step
	s.armed.Store(true)       // before it can ring
	s.armedIn = s.steps
	j := s.end.job
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case s.end.failed.Load() != nil:
	case s.alarm == nil:
		s.alarm = time.AfterFunc(j.suspicion, s.ring)
	default:
		s.alarm.Reset(j.suspicion)
	}
}

func (s *stream) ring() {
	s.late.Or(rung)
	s.armed.Store(false)
	s.rouse()
}

// disarm stops the alarm. Job.mu is held.
func (s *stream) disarm() {
	if s.alarm != nil {
		s.alarm.Stop()
	}
}

func (s *stream) examine() error {
	s.late.Store(0)
	if peer, theirs := s.stranger(); peer != nil {
		return s.mismatch(peer, theirs)
	}
	return nil
}

// stranger returns a peer that is in another call, and that call.
func (s *stream) stranger() (*stream, transport.Signature) {
	s.end.job.mu.Lock()
	defer s.end.job.mu.Unlock()
	s.said, s.call = true, s.sig
	for _, l := range s.links {
		peer := l.to
		if peer == s {
			peer = l.from
			if m := l.next(); m != nil {
				if theirs := m.signature(s.context); differ(theirs, s.sig) || before(theirs, s.sig) {
					return peer, theirs
				}
			}
		}
		switch {
		case !peer.said:
		case differ(peer.call, s.sig), before(s.sig, peer.call) && s.needs(l):
			return peer, peer.call
		case before(peer.call, s.sig):
			// It may wait for what this rank will not do any more,
			// which it could not know when it was examined.
			peer.late.Or(poked)
			peer.rouse()
		}
	}
	return nil, transport.Signature{}
}

// differ reports whether a and b are different calls of the same number.
func differ(a, b transport.Signature) bool { return a.Sequence == b.Sequence && a.Call != b.Call }

// before reports whether call a comes before call b. Sequences may wrap around.
func before(a, b transport.Signature) bool { return int32(a.Sequence-b.Sequence) < 0 }

// needs reports whether the step cannot complete before the other end of the
// link does something.
func (s *stream) needs(l *link) bool {
	for i := range s.recvs {
		if s.recvs[i].link == l {
			return l.next() == nil
		}
	}
	for i := range s.posts {
		if s.posts[i].link == l {
			return true
		}
	}
	for _, loan := range s.loans {
		if loan.link == l && l.unclaimed(loan.turn) {
			return true
		}
	}
	return false
}

// mismatch says how this rank's call and a peer's differ, and says so to the
// peer as well.
func (s *stream) mismatch(peer *stream, theirs transport.Signature) error {
	me, other := s.end.rank, peer.end.rank
	peer.end.fail(&transport.MismatchError{Rank: other, Peer: me, Mine: theirs, Theirs: s.sig})
	return &transport.MismatchError{Rank: me, Peer: other, Mine: s.sig, Theirs: theirs}
}
