package transporttest

import (
	"errors"
	"slices"

	"github.com/chorale-go/chorale/transport"
)

// SetMembers implements [transport.Revoker].
func (e *naive) SetMembers(communicator uint32, ranks []int) {
	e.job.mu.Lock()
	defer e.job.mu.Unlock()
	if e.members[communicator] = ranks; ranks == nil {
		delete(e.members, communicator)
	}
}

// membersOf returns the ranks of a communicator as e knows them.
func (e *naive) membersOf(communicator uint32) (ranks []int) {
	if ranks, set := e.members[communicator]; set {
		return ranks
	}
	for rank := range e.job.ends {
		ranks = append(ranks, rank)
	}
	return ranks
}

// Revoke implements [transport.Revoker].
func (e *naive) Revoke(communicator uint32, why error) {
	e.job.mu.Lock()
	defer e.job.mu.Unlock()
	e.revoke(communicator, why)
}

func (e *naive) revoke(communicator uint32, why error) {
	if e.ended != nil || e.revoked[communicator] != nil {
		return
	}
	said, ok := why.(*transport.PeerError)
	if !ok {
		said = &transport.PeerError{Peer: e.rank, Err: transport.ErrAborted, Reason: why.Error()}
	}
	e.revoked[communicator] = why
	for _, rank := range e.membersOf(communicator) {
		if peer := e.job.ends[rank]; peer.revoked[communicator] == nil {
			peer.revoked[communicator] = said
		}
	}
	for _, rank := range e.membersOf(communicator) {
		e.job.ends[rank].drop(communicator)
	}
	e.job.changed.Broadcast()
}

// drop drops what e has not received in a communicator that is revoked, and ends its
// receives.
func (e *naive) drop(communicator uint32) {
	dropped := func(context uint32) bool {
		return transport.Communicator(context) == communicator && !transport.Resilient(context)
	}
	for _, m := range slices.Clone(e.tagged) {
		switch {
		case !dropped(m.context):
		case m.copied:
			e.dequeue(m)
		default:
			e.job.ends[m.From].giveUp(m.request)
		}
	}
	for _, p := range slices.Clone(e.posted) {
		if dropped(p.match.Context) {
			e.giveUp(p)
		}
	}
	for link := range e.job.steps {
		if link.to == e.rank && dropped(link.context) {
			delete(e.job.steps, link)
		}
	}
}

// Revoked implements [transport.Revoker].
func (e *naive) Revoked(communicator uint32) error {
	e.job.mu.Lock()
	defer e.job.mu.Unlock()
	return e.err(communicator << transport.ContextBits)
}

// err returns why operations in a context fail, or nil. A communicator one of whose ranks
// is lost, or has given up, as any of them knows, is revoked now.
func (e *naive) err(context uint32) error {
	communicator := transport.Communicator(context)
	if e.ended != nil || transport.Resilient(context) {
		return e.ended
	}
	members := e.membersOf(communicator)
	for _, rank := range members {
		for _, other := range members {
			if why := e.job.ends[rank].gone(other); why != nil && !errors.Is(why, transport.ErrLeft) {
				e.revoke(communicator, why)
			}
		}
	}
	return e.revoked[communicator]
}
