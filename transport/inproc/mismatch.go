package inproc

import (
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
)

// A rank that sleeps for longer than the stall timeout checks for a stall. It
// leaves a stall record, which says in which call it is, and compares its call with
// the records of all ranks that it has links with. Of two ranks whose calls differ,
// the second one to check finds the record of the first. So a mismatch is found
// even if neither rank receives what the other sends, or if all receive and none
// sends. Ranks making progress pay nothing.

// A stallCheck decides when a rank checks for a stall.
type stallCheck struct {
	timer    *time.Timer
	armed    atomic.Bool   // the timer will fire
	index    uint32        // of the stall record, under Job.mu: transport.Step.Index
	armedFor uint64        // the number of the step for which it was armed
	requests atomic.Uint32 // why the rank is to check; 0: it is not

	// The stall record, under Job.mu.
	recorded bool
	call     match.Call
	peers    []int // that the step in progress waits for; empty after it
}

// Requests for a stall check.
const (
	timedOut    = 1 << iota // the stall timeout has passed
	askedByPeer             // a peer wants the rank to compare calls again
)

// armStallCheck starts the timer, unless it runs or has fired in this step.
func (s *commState) armStallCheck() {
	c := &s.stall
	if c.armed.Load() || c.armedFor == s.step.number {
		return
	}
	c.requests.And(^uint32(timedOut)) // in an earlier step
	c.armed.Store(true)               // before the timer can fire
	c.armedFor = s.step.number
	j := s.endpoint.job
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case s.waiter.ended():
	case c.timer == nil:
		c.timer = time.AfterFunc(j.stallTimeout, s.stallTimerFired)
	default:
		c.timer.Reset(j.stallTimeout)
	}
}

// stallTimerFired requests a stall check and wakes the rank.
func (s *commState) stallTimerFired() {
	s.stall.requests.Or(timedOut)
	s.stall.armed.Store(false)
	s.waiter.wake()
}

// stop stops the timer. Job.mu is held.
func (c *stallCheck) stop() {
	if c.timer != nil {
		c.timer.Stop()
	}
}

// checkStall returns an error if a stall check was requested and a peer is in a
// mismatched call.
func (s *commState) checkStall() error {
	if s.stall.requests.Load() == 0 {
		return nil
	}
	s.stall.requests.Store(0)
	if peer, theirs := s.mismatchedPeer(); peer != nil {
		return s.mismatch(peer, theirs)
	}
	return nil
}

// mismatchedPeer leaves the stall record and returns a peer that is in another
// call, and that call, or nil.
func (s *commState) mismatchedPeer() (*commState, transport.Signature) {
	s.endpoint.job.mu.Lock()
	defer s.endpoint.job.mu.Unlock()
	s.stall.recorded, s.stall.call = true, match.Call{Signature: s.step.signature}
	s.stall.index = uint32(s.step.index)
	s.stall.peers = s.appendPeersDue(s.stall.peers[:0])
	mine := &s.stall.call
	for _, l := range s.links {
		peer := l.sender.to
		if peer == s {
			peer = l.receiver.from
			if c := l.next(); c != nil {
				theirs := match.Call{Signature: c.signature(s.context)}
				if theirs.Contradicts(mine) || match.Before(theirs.Sequence, mine.Sequence) {
					return peer, theirs.Signature
				}
			}
		}
		switch theirs := &peer.stall.call; {
		case !peer.stall.recorded:
		case theirs.Contradicts(mine), match.Before(mine.Sequence, theirs.Sequence) && s.dependsOn(l):
			return peer, theirs.Signature
		case match.Before(theirs.Sequence, mine.Sequence):
			// The peer may wait for what this rank will not do any more, and
			// could not know that when it checked.
			peer.stall.requests.Or(askedByPeer)
			peer.waiter.wake()
		}
	}
	return nil, transport.Signature{}
}

// appendPeersDue appends the ranks that the step waits for to an empty list.
func (s *commState) appendPeersDue(peers []int) []int {
	for _, l := range s.links {
		if s.dependsOn(l) {
			peers = append(peers, l.peer(s))
		}
	}
	slices.Sort(peers)
	return slices.Compact(peers)
}

// endStall notes that the step does not wait any more.
func (s *commState) endStall() {
	if len(s.stall.peers) != 0 {
		s.endpoint.job.mu.Lock()
		s.stall.peers = s.stall.peers[:0]
		s.endpoint.job.mu.Unlock()
	}
}

// Stalls implements [transport.Endpoint].
func (e *Endpoint) Stalls() (stalls []transport.Stall) {
	stalls = e.tagged.stalls()
	e.job.mu.Lock()
	defer e.job.mu.Unlock()
	if e.notice != nil {
		return nil
	}
	for _, s := range e.comms {
		if len(s.stall.peers) != 0 {
			stalls = append(stalls, transport.Stall{
				Signature: s.stall.call.Signature, Peers: slices.Clone(s.stall.peers), Step: int(s.stall.index),
				Operation: uintptr(unsafe.Pointer(s)), // see progress
			})
		}
	}
	return stalls
}

// dependsOn reports whether the step cannot complete before the rank on the other
// side of the link acts.
func (s *commState) dependsOn(l *link) bool {
	for i := range s.step.recvs {
		if s.step.recvs[i].link == l {
			return l.next() == nil
		}
	}
	for i := range s.step.sends {
		if s.step.sends[i].link == l {
			return true
		}
	}
	for _, r := range s.step.rendezvous {
		if r.link == l && r.unread() {
			return true
		}
	}
	return false
}

// endedBy returns the error of the step, which cannot be completed since the part of a peer
// has ended. If the last call of a peer that has left contradicts this one, ranks have called
// different things.
func (s *commState) endedBy(peer *commState) error {
	if theirs := peer.lastSignature(); theirs.Call != "" {
		mine := match.Call{Signature: s.step.signature}
		if mine.Contradicts(&match.Call{Signature: theirs}) {
			return s.mismatch(peer, theirs)
		}
	}
	return peer.terminationNotice()
}

// lastSignature returns the last call of a rank that has left, or a zero one.
func (s *commState) lastSignature() (last transport.Signature) {
	e := s.endpoint
	e.job.mu.Lock()
	defer e.job.mu.Unlock()
	if e.notice != nil && e.notice.Err == transport.ErrLeft && !s.step.inProgress.Load() {
		last = s.step.signature
	}
	return last
}

// mismatch returns the error for this rank, whose call and a peer's differ, and
// fails the peer with its own.
func (s *commState) mismatch(peer *commState, theirs transport.Signature) error {
	me, other := s.endpoint.rank, peer.endpoint.rank
	peer.endpoint.fail(&transport.MismatchError{Rank: other, Peer: me, Mine: theirs, Theirs: s.step.signature})
	return &transport.MismatchError{Rank: me, Peer: other, Mine: s.step.signature, Theirs: theirs}
}
