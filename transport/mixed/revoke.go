package mixed

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/chorale-go/chorale/transport"
)

// This file has how a communicator that fails at one of the endpoints fails at the other.

// SetMembers implements [transport.Revoker].
func (e *Endpoint) SetMembers(communicator uint32, ranks []int) {
	e.mu.Lock()
	if e.members[communicator] = ranks; ranks == nil {
		delete(e.members, communicator)
	}
	e.mu.Unlock()
	e.local.SetMembers(communicator, ranks)
	e.remote.SetMembers(communicator, ranks)
}

// isMember reports whether a rank belongs to a communicator.
func (e *Endpoint) isMember(communicator uint32, rank int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	members := e.members[communicator]
	return members == nil || slices.Contains(members, rank)
}

// Revoke implements [transport.Revoker].
func (e *Endpoint) Revoke(communicator uint32, why error) {
	e.local.Revoke(communicator, why)
	e.remote.Revoke(communicator, why)
}

// Revoked implements [transport.Revoker].
func (e *Endpoint) Revoked(communicator uint32) error {
	return cmp.Or(e.ended(), e.local.Revoked(communicator), e.remote.Revoked(communicator))
}

// revokeAt returns what revokes at one endpoint what is revoked at the other.
func (e *Endpoint) revokeAt(from, to Part) func(communicator uint32, why *transport.PeerError) {
	return func(communicator uint32, why *transport.PeerError) {
		if why.Peer == e.Rank() {
			// The error of this rank may be another than what the others are told.
			to.Revoke(communicator, cmp.Or(from.Revoked(communicator), error(why)))
			return
		}
		to.Revoke(communicator, why)
	}
}

// listenTime is how often an endpoint hears of revocations at which no call waits.
const listenTime = 50 * time.Millisecond

// listen has each endpoint take what has arrived while calls wait at the other alone: it may
// be a revocation that ends them. It returns when the endpoint closes.
func (e *Endpoint) listen() {
	ticker := time.NewTicker(listenTime)
	defer ticker.Stop()
	for {
		select {
		case <-e.closing:
			return
		case <-ticker.C:
			e.hear(e.local, e.remote)
			e.hear(e.remote, e.local)
		}
	}
}

func (e *Endpoint) hear(busy, idle Part) {
	defer func() {
		if recover() != nil { // a Combine of a step that has begun meanwhile
			_ = e.fail(transport.ErrPanicked)
		}
	}()
	if len(busy.Stalls()) > 0 && len(idle.Stalls()) == 0 {
		idle.Progress()
	}
}

// failStep ends at both endpoints what the error of a step ends, and returns the error of
// the step. A step whose context has ended, or whose peer has gone, revokes its communicator.
// Any other error ends both endpoints.
func (e *Endpoint) failStep(ctx context.Context, communicator uint32, err error) error {
	if why := cmp.Or(e.ended(), endedAt(e.local), endedAt(e.remote)); why != nil {
		return e.fail(why)
	}
	var peer *transport.PeerError
	if !errors.As(err, &peer) && !errors.Is(err, ctx.Err()) && e.Revoked(communicator) == nil {
		return e.fail(err)
	}
	e.Revoke(communicator, err)
	return cmp.Or(e.Revoked(communicator), err)
}

// spread ends at one endpoint what the error of a step has ended at the other: its part in
// the job, or the communicator.
func spread(from, to Part, communicator uint32, err error) {
	if why := endedAt(from); why != nil {
		to.Abort(why)
	} else {
		to.Revoke(communicator, err)
	}
}

// endedAt returns why the part of an endpoint in the job has ended, or nil: an endpoint has no
// other reason to refuse a look for a message of this rank to itself in a resilient context.
func endedAt(end transport.ProcessEndpoint) error {
	_, _, err := end.Probe(context.Background(), end.Rank(), transport.Match{Context: transport.ResilientContext(0)}, false)
	return err
}
