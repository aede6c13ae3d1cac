package mixed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chorale-go/chorale/transport"
)

// A Part is an endpoint that New joins with another.
type Part interface {
	transport.ProcessEndpoint
	transport.Starter

	// OnRevoke has f called, in a goroutine of its own, for every communicator that is
	// revoked from now on.
	OnRevoke(f func(communicator uint32, why *transport.PeerError))
}

// An Endpoint is one rank's attachment to a job over a local and a remote endpoint.
// It may be used as [transport.Endpoint] and [transport.LossSink] say.
type Endpoint struct {
	local, remote Part
	pollTime      time.Duration // the constant; tests have all the time they need
	isLocal       func(ctx context.Context, rank int) (bool, error)
	locations     []atomic.Uint32 // by rank
	allLocal      atomic.Bool     // every other rank is known to be local
	turns         atomic.Uint32   // counts the looks for a message from any rank
	listening     sync.Once       // listen was started
	closing       chan struct{}   // closed by Close

	mu     sync.Mutex // guards the fields below
	closed bool
	err    error        // why this endpoint's part in the job has ended
	spare  []*splitStep // that are not in use

	members map[uint32][]int // by communicator

	driven       [2]driven     // requests in progress, of local and of remote
	lastFromBoth chan struct{} // is closed when the last receive from both is done
}

var _ transport.ProcessEndpoint = (*Endpoint)(nil)

// The locations of a rank.
const (
	unknown uint32 = iota
	onHost
	elsewhere
)

// New joins two endpoints of one rank and owns them from now on. Both number the
// ranks of the job alike.
//
// The endpoint calls isLocal before its first message to or from a rank; of two
// ranks, both must get the same answer about each other. IsLocal may block until the
// rank has joined the job, and returns when ctx ends. It returns an error if the
// rank will never join: operations with the rank then fail with this error if it
// wraps a [transport.PeerError], and else with one that holds [transport.ErrLost].
// IsLocal may be called by several goroutines at a time.
func New(local, remote Part, isLocal func(ctx context.Context, rank int) (bool, error)) *Endpoint {
	e := &Endpoint{local: local, remote: remote, pollTime: pollTime, isLocal: isLocal, locations: make([]atomic.Uint32, local.Size()), closing: make(chan struct{}), members: map[uint32][]int{}}
	for i, end := range []Part{local, remote} {
		e.driven[i].end, e.driven[i].moved.L = end, &e.mu
	}
	local.OnRevoke(e.revokeAt(local, remote))
	remote.OnRevoke(e.revokeAt(remote, local))
	return e
}

// Rank returns this endpoint's rank.
func (e *Endpoint) Rank() int { return e.local.Rank() }

// Held implements [transport.Endpoint].
func (e *Endpoint) Held() transport.Held {
	l, r := e.local.Held(), e.remote.Held()
	return transport.Held{Unexpected: l.Unexpected + r.Unexpected, Tagged: l.Tagged + r.Tagged, Unsent: l.Unsent + r.Unsent, Allocated: l.Allocated}
}

// Stalls implements [transport.Endpoint].
func (e *Endpoint) Stalls() []transport.Stall {
	stalls := e.local.Stalls()
	for _, remote := range e.remote.Stalls() {
		i := slices.IndexFunc(stalls, func(s transport.Stall) bool { return s.Signature == remote.Signature })
		if i < 0 || remote.Signature.Call == "" {
			stalls = append(stalls, remote)
			continue
		}
		stalls[i].Peers = append(stalls[i].Peers, remote.Peers...)
		slices.Sort(stalls[i].Peers)
	}
	return stalls
}

// Size returns the number of ranks of the job.
func (e *Endpoint) Size() int { return e.local.Size() }

// Exchange implements [transport.Exchanger].
func (e *Endpoint) Exchange(ctx context.Context, step transport.Step) (err error) {
	err = transport.ErrPanicked // unless what follows returns
	defer func() {
		if err != nil {
			err = e.failStep(ctx, transport.Communicator(step.Signature.Context), err)
		}
	}()
	if e.allLocal.Load() {
		return e.local.Exchange(ctx, step)
	}
	return e.exchange(ctx, step)
}

func (e *Endpoint) exchange(ctx context.Context, step transport.Step) error {
	if err := e.ended(); err != nil {
		return err
	}
	local, remote, err := e.locatePeers(ctx, &step)
	switch {
	case err != nil:
		return err
	case !remote:
		e.driveOther(e.local)
		return e.local.Exchange(ctx, step)
	case !local:
		e.driveOther(e.remote)
		return e.remote.Exchange(ctx, step)
	}
	return e.exchangeBoth(ctx, step)
}

// locatePeers reports whether a step has local peers, and whether it has remote
// ones.
func (e *Endpoint) locatePeers(ctx context.Context, step *transport.Step) (local, remote bool, err error) {
	add := func(rank int) bool {
		if rank < 0 || rank >= len(e.locations) || rank == e.Rank() {
			err = &transport.RankError{Peer: rank, Rank: e.Rank(), Size: len(e.locations)}
			return false
		}
		var location uint32
		if location, err = e.locate(ctx, rank); err != nil {
			return false
		}
		local, remote = local || location == onHost, remote || location == elsewhere
		return true
	}
	for i := range step.Sends {
		for _, to := range step.Sends[i].To {
			if !add(to) {
				return
			}
		}
	}
	for i := range step.Recvs {
		if !add(step.Recvs[i].From) {
			return
		}
	}
	return
}

// locate returns the location of a rank. This rank itself is on its host. So is a
// rank that does not exist: the local endpoint returns the error.
func (e *Endpoint) locate(ctx context.Context, rank int) (uint32, error) {
	if rank < 0 || rank >= len(e.locations) || rank == e.Rank() {
		return onHost, nil
	}
	if location := e.locations[rank].Load(); location != unknown {
		return location, nil
	}
	if ctx.Err() != nil {
		return unknown, transport.Cause(ctx)
	}
	local, err := e.isLocal(ctx, rank)
	if err != nil {
		peerErr := new(transport.PeerError)
		switch {
		case ctx.Err() != nil:
			return unknown, transport.Cause(ctx)
		case errors.As(err, &peerErr):
			return unknown, peerErr
		}
		return unknown, &transport.PeerError{Peer: rank, Err: transport.ErrLost, Reason: err.Error()}
	}
	if !local {
		e.locations[rank].Store(elsewhere)
		e.listening.Do(func() { go e.listen() })
		return elsewhere, nil
	}
	e.locations[rank].Store(onHost)
	e.setAllLocal()
	return onHost, nil
}

// setAllLocal sets allLocal if every other rank is known to be local.
func (e *Endpoint) setAllLocal() {
	for rank := range e.locations {
		if rank != e.Rank() && e.locations[rank].Load() != onHost {
			return
		}
	}
	e.allLocal.Store(true)
}

// ended returns why this endpoint's part in the job has ended, or nil.
func (e *Endpoint) ended() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return transport.ErrClosed
	}
	return e.err
}

// Abort implements [transport.Endpoint].
func (e *Endpoint) Abort(why error) {
	_ = e.fail(why)
	e.local.Abort(why) // also while Close waits
	e.remote.Abort(why)
}

// fail ends the part of both endpoints because of an error of one, and returns why they
// have ended.
func (e *Endpoint) fail(err error) error {
	e.mu.Lock()
	closed, before := e.closed, e.err
	if !closed && before == nil {
		e.err = err
	}
	e.mu.Unlock()
	switch {
	case closed:
		return transport.ErrClosed
	case before != nil:
		return before
	}
	e.local.Abort(err)
	e.remote.Abort(err)
	return err
}

// Lost implements [transport.LossSink].
func (e *Endpoint) Lost(rank int, reason string) {
	e.local.Lost(rank, reason)
	e.remote.Lost(rank, reason)
}

// Release drops what both endpoints hold for a context, as [transport.Endpoint]
// says.
func (e *Endpoint) Release(context uint32) {
	e.local.Release(context)
	e.remote.Release(context)
}

// CheckUnreceived returns a [transport.UnreceivedError] if a message has arrived at
// either endpoint that no Exchange has received.
func (e *Endpoint) CheckUnreceived() error {
	if e.ended() != nil {
		return nil
	}
	if err := e.local.CheckUnreceived(); err != nil {
		return err
	}
	return e.remote.CheckUnreceived()
}

// Close leaves the job: it closes both endpoints at the same time, since each may
// linger. It returns their errors, joined; of two [transport.UndeliveredError] it makes
// one, which counts the bytes of both.
func (e *Endpoint) Close() error {
	e.mu.Lock()
	if !e.closed {
		close(e.closing)
	}
	e.closed = true
	e.mu.Unlock()
	remote := make(chan error, 1)
	go func() { remote <- e.remote.Close() }()
	return joinClosed(e.local.Close(), <-remote)
}

func joinClosed(local, remote error) error {
	var l, r *transport.UndeliveredError
	if errors.As(local, &l) && errors.As(remote, &r) {
		return &transport.UndeliveredError{Rank: l.Rank, Peer: l.Peer, Bytes: l.Bytes + r.Bytes, Err: join(l.Err, r.Err)}
	}
	return join(local, remote)
}

// join returns the errors of both endpoints as one. If one of them is the cause of
// the other or says the same, join returns that one alone.
func join(local, remote error) error {
	switch {
	case local == nil, remote != nil && errors.Is(local, remote):
		return remote
	case remote == nil, errors.Is(remote, local), local.Error() == remote.Error():
		return local
	}
	return fmt.Errorf("%w; %w", local, remote)
}
