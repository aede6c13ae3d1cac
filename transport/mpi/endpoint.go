//go:build mpi

package mpi

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/progress"
)

// An Endpoint is one rank's attachment to a job. It implements
// [transport.ProcessEndpoint].
type Endpoint struct {
	transport.PrivateMemory
	cfg        Config
	world      *world
	comm       comm
	leave      func(e *Endpoint, peace bool) error // ends a Close, of a rank that has left in peace or failed
	processors progress.Processors
	engine     progress.Engine // its lock guards all that follows
	links      []*link         // by rank; nil where none was needed yet
	changed    []*link         // links to look at once more
	requests   requestTable
	backlog    []*link // links with frames or pieces that wait for a request
	arrivals   arrivalQueue
	pulls      pullSet
	detached   int         // frames that no operation waits for, and that are not sent
	unexpected bool        // there may be unexpected messages of steps
	spare      [2][]*frame // by size: frames for their memory
	abandoned  error       // what a rank that leaves has given up to deliver
	noticed    bool        // every peer has been told why this endpoint's part has ended
	deserted   bool        // a peer has given up, or is lost: it does not end MPI
	yields     bool        // a rank that polls lets others have the core
	progressed bool        // the last poll has found something
	broken     error       // an error of MPI
	doom       bool        // transfers may be under way that belong to no operation in progress
}

// openEndpoints counts the endpoints of this process.
var openEndpoints atomic.Int32

// joined says that New was called.
var joined atomic.Bool

// errSecond is the error of a second New.
var errSecond = errors.New("mpi: this process has joined before: MPI starts once in a process")

// Present reports whether this program was built with an MPI.
const Present = true

// New makes the endpoint of this process, whose rank and job are those of MPI_COMM_WORLD. It
// starts MPI, and returns when every rank has called New. MPI starts once in
// a process, so that New does too.
//
// An endpoint that is closed while no rank's part in the job has failed ends MPI: its Close
// returns when all ranks have left.
func New(cfg Config) (transport.ProcessEndpoint, Job, error) {
	if joined.Swap(true) {
		return nil, Job{}, errSecond
	}
	w, err := start()
	if err != nil {
		return nil, Job{}, err
	}
	e, err := w.open(cfg, w.size, func(e *Endpoint, peace bool) error {
		if !peace { // the launcher ends the job with this process
			go e.finish(context.Background(), false)
			return nil
		}
		peace, err := e.finish(context.Background(), true)
		if err != nil || !peace {
			return err
		}
		return w.end()
	})
	if err != nil {
		return nil, Job{}, err
	}
	return e, w.job, nil
}

// open makes the endpoint of a job of the first n ranks.
func (w *world) open(cfg Config, n int, leave func(e *Endpoint, peace bool) error) (*Endpoint, error) {
	c, err := w.newComm(n)
	if err != nil {
		return nil, err
	}
	openEndpoints.Add(1)
	e := &Endpoint{
		cfg: cfg, world: w, comm: c, leave: leave,
		processors: progress.Share(w.local(), &openEndpoints),
		links:      make([]*link, n),
	}
	e.requests.init()
	e.arrivals.init()
	e.pulls.init()
	e.engine.Init((*hooks)(e), w.rank, n)
	e.engine.FailTogether()
	return e, nil
}

// Rank returns this endpoint's rank.
func (e *Endpoint) Rank() int { return e.engine.Rank }

// Size returns the number of ranks of the job.
func (e *Endpoint) Size() int { return e.engine.Size }

// Held implements [transport.Endpoint].
func (e *Endpoint) Held() (h transport.Held) {
	e.engine.Lock()
	defer e.engine.Unlock()
	h.Tagged, h.Allocated = e.engine.Tagged().Held(), e.Allocated()
	for _, l := range e.links {
		if l != nil {
			h.Unexpected += l.in.queue.Held()
			h.Unsent += l.out.unsent
		}
	}
	return h
}

// Exchange does one step, as [transport.Endpoint] says. A send is complete when MPI has
// let go of the message's memory.
func (e *Endpoint) Exchange(ctx context.Context, step transport.Step) error {
	e.engine.Lock()
	defer e.engine.Unlock()
	if n := len(step.Signature.Call); n > callMax && e.engine.Err() == nil {
		e.engine.Fail(fmt.Errorf("mpi: the call's text has %d bytes, at most %d are allowed", n, callMax))
	}
	if err := e.engine.Admit(ctx, &step); err != nil {
		return err
	}
	o := e.engine.Begin(ctx)
	defer e.engine.Leave(o)
	e.start(o, &step)
	return o.Await()
}

// Lost implements [transport.LossSink].
func (e *Endpoint) Lost(rank int, reason string) {
	if !e.engine.IsPeer(rank) {
		return
	}
	e.engine.Lock()
	defer e.engine.Unlock()
	e.link(rank).lose(reason)
}

// Release implements [transport.Endpoint].
func (e *Endpoint) Release(context uint32) {
	e.engine.Lock()
	defer e.engine.Unlock()
	for _, l := range e.links {
		if l != nil {
			l.release(context)
		}
	}
	e.engine.Guard(e.settle)
	e.engine.ReleaseTagged(context)
}

// CheckUnreceived implements [transport.Endpoint].
func (e *Endpoint) CheckUnreceived() error {
	e.engine.Lock()
	defer e.engine.Unlock()
	if e.engine.Failed() {
		return nil
	}
	e.engine.Guard(e.pollAll)
	for _, l := range e.links {
		if e.engine.Failed() {
			return nil
		}
		if l == nil {
			continue
		}
		if m := l.in.queue.First(); m != nil {
			return e.engine.Unreceived(l.peer, m.Signature)
		}
	}
	return e.engine.UnreceivedTagged()
}

// Stalls implements [transport.Endpoint].
func (e *Endpoint) Stalls() []transport.Stall {
	return e.engine.Stalls(func(o *progress.Op, peer int) bool {
		l := e.links[peer]
		return l != nil && l.sendsFor(o)
	})
}

// drain takes what still comes in, and drops it, until MPI has delivered all that this rank
// has sent, and, if the rank has left in peace, until every rank of the job has: MPI
// need not deliver a message that nobody receives. It ends with ctx. It reports whether
// all have left in peace. Where a peer has failed, or nothing is to be waited for, it gives
// the launcher failedWait to end the job, and other ranks the time to say why.
func (e *Endpoint) drain(ctx context.Context, peace bool) (bool, error) {
	var failed time.Time // since when
	for wait := backoff; ctx.Err() == nil; wait = min(2*wait, napMax) {
		if err := e.poll(1); err != nil {
			return false, err
		}
		if e.deserted || e.engine.Abandoned() != nil {
			if failed.IsZero() {
				failed = time.Now()
			}
			peace = peace && time.Since(failed) < failedWait
		}
		if e.requests.sending == 0 && len(e.backlog) == 0 {
			if !peace {
				return false, nil
			}
			if done, err := e.comm.barrier(); done || err != nil {
				return err == nil, err
			}
		}
		e.engine.UnlockNow()
		pause(wait)
		e.engine.Lock()
	}
	return false, nil
}

// Abort implements [transport.Endpoint].
func (e *Endpoint) Abort(why error) { e.engine.Abort(why) }

// SetMembers implements [transport.Revoker].
func (e *Endpoint) SetMembers(communicator uint32, ranks []int) {
	e.engine.SetMembers(communicator, ranks)
}

// Revoke implements [transport.Revoker].
func (e *Endpoint) Revoke(communicator uint32, why error) { e.engine.Revoke(communicator, why) }

// Revoked implements [transport.Revoker].
func (e *Endpoint) Revoked(communicator uint32) error { return e.engine.Revoked(communicator) }
