// Package mixed makes one endpoint of two: a near one, for the ranks of the same
// host, and a far one, for all others.
//
// All messages between two ranks go one way, so that they stay in order. A step
// that concerns both is divided, and its two parts are done at the same time.
// When one endpoint's part in the job ends, the other's does too.
package mixed

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/chorale-go/chorale/transport"
)

// A Part is what an endpoint is mixed of. Both know all ranks of the job by the
// same numbers.
type Part interface {
	transport.Endpoint
	transport.LossSink
}

// An Endpoint is one rank's attachment to a job over two parts.
type Endpoint struct {
	near, far Part
	isNear    func(ctx context.Context, rank int) (bool, error)
	ways      []atomic.Uint32 // by rank
	all       atomic.Bool     // every other rank is near
	taking    sync.Mutex      // held by who looks for a letter from any rank

	mu     sync.Mutex
	closed bool
	err    error // why this endpoint's part has ended
}

// The ways to a rank.
const (
	unknown uint32 = iota
	isNear
	isFar
)

// New mixes two endpoints of one rank, which it owns from now on. IsNear says
// whether a rank is near; of two ranks both must say the same. It may block
// until the rank has joined the job, but returns when ctx ends. An error says
// why the rank will never be there.
func New(near, far Part, isNear func(ctx context.Context, rank int) (bool, error)) *Endpoint {
	return &Endpoint{near: near, far: far, isNear: isNear, ways: make([]atomic.Uint32, near.Size())}
}

// Rank returns this endpoint's rank.
func (e *Endpoint) Rank() int { return e.near.Rank() }

// Size returns the number of ranks of the job.
func (e *Endpoint) Size() int { return e.near.Size() }

// Exchange does one step, as [transport.Endpoint] says.
func (e *Endpoint) Exchange(ctx context.Context, step transport.Step) error {
	if e.all.Load() {
		return e.failed(e.near.Exchange(ctx, step))
	}
	return e.failed(e.exchange(ctx, step))
}

func (e *Endpoint) exchange(ctx context.Context, step transport.Step) error {
	if err := e.ended(); err != nil {
		return err
	}
	near, far, err := e.survey(ctx, &step)
	switch {
	case err != nil:
		return err
	case !far:
		return e.near.Exchange(ctx, step)
	case !near:
		return e.far.Exchange(ctx, step)
	}
	return e.both(ctx, step)
}

// survey finds out which parts a step concerns.
func (e *Endpoint) survey(ctx context.Context, step *transport.Step) (near, far bool, err error) {
	note := func(rank int) bool {
		if rank < 0 || rank >= len(e.ways) || rank == e.Rank() {
			err = &transport.RankError{Peer: rank, Rank: e.Rank(), Size: len(e.ways)}
			return false
		}
		var way uint32
		if way, err = e.way(ctx, rank); err != nil {
			return false
		}
		near, far = near || way == isNear, far || way == isFar
		return true
	}
	for i := range step.Sends {
		for _, to := range step.Sends[i].To {
			if !note(to) {
				return
			}
		}
	}
	for i := range step.Recvs {
		if !note(step.Recvs[i].From) {
			return
		}
	}
	return
}

// way returns the way to a rank. This rank and those that there are not are near,
// where letters to them are dealt with.
func (e *Endpoint) way(ctx context.Context, rank int) (uint32, error) {
	if rank < 0 || rank >= len(e.ways) || rank == e.Rank() {
		return isNear, nil
	}
	if way := e.ways[rank].Load(); way != unknown {
		return way, nil
	}
	if ctx.Err() != nil {
		return unknown, transport.Cause(ctx)
	}
	near, err := e.isNear(ctx, rank)
	if err != nil {
		known := new(transport.PeerError)
		switch {
		case ctx.Err() != nil:
			return unknown, transport.Cause(ctx)
		case errors.As(err, &known):
			return unknown, known
		}
		return unknown, &transport.PeerError{Peer: rank, Err: transport.ErrLost, Reason: err.Error()}
	}
	way := isFar
	if near {
		way = isNear
	}
	e.ways[rank].Store(way)
	if near {
		e.count()
	}
	return way, nil
}

// count notes when every other rank is known to be near.
func (e *Endpoint) count() {
	for rank := range e.ways {
		if rank != e.Rank() && e.ways[rank].Load() != isNear {
			return
		}
	}
	e.all.Store(true)
}

// ended returns why this endpoint's part has ended, or nil.
func (e *Endpoint) ended() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return transport.ErrClosed
	}
	return e.err
}

// failed ends both parts on account of the error of one Exchange, and returns why
// they have ended.
func (e *Endpoint) failed(err error) error {
	if err == nil {
		return nil
	}
	e.mu.Lock()
	if e.closed || e.err != nil {
		defer e.mu.Unlock()
		if e.closed {
			return transport.ErrClosed
		}
		return e.err
	}
	e.err = err
	e.mu.Unlock()
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(err)
	// Their errors are that the context has ended, or older.
	_ = e.near.Exchange(ctx, transport.Step{})
	_ = e.far.Exchange(ctx, transport.Step{})
	return err
}

// Lost tells the endpoint that a rank is gone.
func (e *Endpoint) Lost(rank int, reason string) {
	e.near.Lost(rank, reason)
	e.far.Lost(rank, reason)
}

// Release drops what the endpoint holds for a context in which it has had its
// last Exchange and taken its last letter.
func (e *Endpoint) Release(context uint32) {
	e.near.Release(context)
	e.far.Release(context)
}

// CheckUnreceived returns a [transport.UnreceivedError] if a message has come that no
// Exchange has received.
func (e *Endpoint) CheckUnreceived() error {
	if e.ended() != nil {
		return nil
	}
	if err := e.near.CheckUnreceived(); err != nil {
		return err
	}
	return e.far.CheckUnreceived()
}

// Close leaves the job.
func (e *Endpoint) Close() error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	return errors.Join(e.near.Close(), e.far.Close())
}
