package inproc

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/chorale-go/chorale/transport"
)

// This file has how a communicator fails while the others of the job go on: see
// [transport.Revoker].

// A failure says which operations of an endpoint fail, and why. It is replaced, never
// changed.
type failure struct {
	ended   error            // all of them, because the endpoint has ended
	revoked map[uint32]error // those of communicators, by number
	gaveUp  bool             // a rank has given up: Endpoint.errLocked finds out what that means
}

// err returns why operations in a context fail, or nil.
func (e *Endpoint) err(context uint32) error {
	if e.failed.Load() == nil { // mostly; this is inlined
		return nil
	}
	return e.findErr(context)
}

func (e *Endpoint) findErr(context uint32) error {
	f := e.failed.Load()
	if err := f.in(context); err != nil || !f.gaveUp {
		return err
	}
	e.job.mu.Lock()
	defer e.job.mu.Unlock()
	return e.errLocked(context)
}

// in returns what the failure means to operations in a context.
func (f *failure) in(context uint32) error {
	if f.ended != nil || transport.Resilient(context) {
		return f.ended
	}
	return f.revoked[transport.Communicator(context)]
}

// revokes reports whether tagged messages in a context fail when a communicator is revoked.
func revokes(communicator, context uint32) bool {
	return transport.Communicator(context) == communicator && !transport.Resilient(context)
}

// knownErr is err for a caller that must not lock Job.mu: it does not know of communicators
// that are to be revoked because a rank has given up.
func (e *Endpoint) knownErr(context uint32) error {
	if f := e.failed.Load(); f != nil {
		return f.in(context)
	}
	return nil
}

// drops reports whether tagged messages that arrive in a context are dropped: its
// communicator is revoked.
func (e *Endpoint) drops(context uint32) bool {
	f := e.failed.Load()
	return f != nil && f.revoked[transport.Communicator(context)] != nil && !transport.Resilient(context)
}

// errLocked is err for a caller that has locked Job.mu. A communicator to which a rank
// belongs that has given up is revoked now.
func (e *Endpoint) errLocked(context uint32) error {
	f := e.failed.Load()
	if f == nil {
		return nil
	}
	if err := f.in(context); err != nil || !f.gaveUp || transport.Resilient(context) {
		return err
	}
	communicator := transport.Communicator(context)
	if notice := e.gaveUpIn(communicator); notice != nil {
		e.revoke(communicator, notice)
	}
	return e.failed.Load().in(context)
}

// ended returns why the endpoint has ended, or nil.
func (e *Endpoint) ended() error {
	if f := e.failed.Load(); f != nil {
		return f.ended
	}
	return nil
}

// change replaces the endpoint's failure by one in which f has changed something. Job.mu
// is held.
func (e *Endpoint) change(f func(*failure)) {
	var next failure
	if before := e.failed.Load(); before != nil {
		next = *before
	}
	f(&next)
	e.failed.Store(&next)
}

// SetMembers implements [transport.Revoker].
func (e *Endpoint) SetMembers(communicator uint32, ranks []int) {
	e.job.mu.Lock()
	defer e.job.mu.Unlock()
	if ranks == nil {
		delete(e.members, communicator)
		return
	}
	if e.members == nil {
		e.members = map[uint32][]int{}
	}
	e.members[communicator] = ranks
}

// has reports whether a rank belongs to a communicator. Job.mu is held.
func (e *Endpoint) has(communicator uint32, rank int) bool {
	members := e.members[communicator]
	return members == nil || slices.Contains(members, rank)
}

// gaveUpIn returns the notice of a rank of a communicator that has given up, or nil. Job.mu
// is held.
func (e *Endpoint) gaveUpIn(communicator uint32) *transport.PeerError {
	members := e.members[communicator]
	if members == nil {
		return e.job.aborted
	}
	for _, rank := range members {
		if notice := e.job.endpoints[rank].notice; notice != nil && notice.Err == transport.ErrAborted {
			return notice
		}
	}
	return nil
}

// Revoke implements [transport.Revoker].
func (e *Endpoint) Revoke(communicator uint32, why error) {
	e.job.mu.Lock()
	defer e.job.mu.Unlock()
	e.revoke(communicator, why)
}

// Revoked implements [transport.Revoker].
func (e *Endpoint) Revoked(communicator uint32) error {
	return e.err(communicator << transport.ContextBits)
}

// revoke revokes a communicator on all its ranks. Job.mu is held.
func (e *Endpoint) revoke(communicator uint32, why error) {
	if !e.endContexts(communicator, why) {
		return
	}
	told, said := []*Endpoint{e}, e.said(why)
	tell := func(rank int) {
		if peer := &e.job.endpoints[rank]; peer.endContexts(communicator, said) {
			told = append(told, peer)
		}
	}
	if members := e.members[communicator]; members != nil {
		for _, rank := range members {
			tell(rank)
		}
	} else {
		for rank := range e.job.endpoints {
			tell(rank)
		}
	}
	for _, e := range told { // now that each knows the error of what is dropped
		e.tagged.revoke(communicator, e.knownErr(communicator<<transport.ContextBits))
	}
}

// said returns what the other ranks are told when this one revokes a communicator.
func (e *Endpoint) said(why error) *transport.PeerError {
	if said, ok := why.(*transport.PeerError); ok {
		return said
	}
	return &transport.PeerError{Peer: e.rank, Err: transport.ErrAborted, Reason: why.Error()}
}

// endContexts ends the steps in the contexts of a communicator, unless it is revoked or the
// endpoint has ended, and reports whether it did. What lies in cells stays there unread.
// Job.mu is held.
func (e *Endpoint) endContexts(communicator uint32, why error) bool {
	if f := e.failed.Load(); f != nil && (f.ended != nil || f.revoked[communicator] != nil) {
		return false
	}
	e.change(func(f *failure) {
		f.revoked = maps.Clone(f.revoked)
		if f.revoked == nil {
			f.revoked = map[uint32]error{}
		}
		f.revoked[communicator] = why
	})
	for context, s := range e.comms {
		if transport.Communicator(context) == communicator {
			s.end()
		}
	}
	return true
}

// revokeGone revokes the communicators to which this rank belongs, which has given up, on
// all ranks that have begun to use them. The others look when they do. Job.mu is held.
func (e *Endpoint) revokeGone() {
	for rank := range e.job.endpoints {
		peer := &e.job.endpoints[rank]
		if peer.notice != nil {
			continue
		}
		peer.change(func(f *failure) { f.gaveUp = true })
		for context, s := range peer.comms {
			c := transport.Communicator(context)
			begun := c == 0 || peer.members[c] != nil || s.step.inProgress.Load() // and not only opened by a peer
			if begun && !s.waiter.ended() && peer.has(c, e.rank) {
				peer.revoke(c, e.notice)
			}
		}
		for c, members := range peer.members {
			if slices.Contains(members, e.rank) {
				peer.revoke(c, e.notice)
			}
		}
	}
}

// fail ends the step, which has failed, and returns its error: that because of which the
// communicator is revoked, or the endpoint has ended, whichever came first. A step that waits for a peer that has
// gone, or whose context has ended, revokes its communicator. Any other error ends the
// endpoint.
func (s *commState) fail(ctx context.Context, err error) error {
	e := s.endpoint
	var peer *transport.PeerError
	switch {
	case err == errEnded:
	case errors.As(err, &peer), errors.Is(err, ctx.Err()):
		e.Revoke(transport.Communicator(s.context), err)
	default:
		return e.fail(err)
	}
	e.job.mu.Lock()
	defer e.job.mu.Unlock()
	if why := e.failed.Load().revoked[transport.Communicator(s.context)]; why != nil {
		return why // an endpoint that has ended revokes nothing
	}
	return e.ended()
}

// errEnded is the error of a step whose wait word says that no step goes on in its context.
var errEnded = errors.New("the endpoint has ended, or the communicator is revoked")

// terminationNotice returns the error with which a rank on which no step goes on in this
// context fails the calls of its peers.
func (s *commState) terminationNotice() error {
	e := s.endpoint
	e.job.mu.Lock()
	defer e.job.mu.Unlock()
	if e.notice != nil {
		return e.notice
	}
	return e.said(e.failed.Load().revoked[transport.Communicator(s.context)])
}

// isRevoked reports whether the endpoint drops what has arrived in the context. Job.mu is
// held.
func (s *commState) isRevoked() bool {
	f := s.endpoint.failed.Load()
	return f != nil && f.revoked[transport.Communicator(s.context)] != nil
}
