package chorale

import (
	"context"
	"fmt"
)

// A Persistent is a call that is prepared once and started many times. Once the
// calls that it makes are compiled, starting it allocates nothing. Its methods are
// called by one goroutine at a time.
type Persistent struct {
	claim
	comm    *Comm // on which it was prepared
	own     *Comm // the communicator that f gets
	f       Func
	ctx     context.Context // of the start in progress
	starter *starter        // of that, for a profile; else nil
	starts  uint32          // so far, for a profile
	started bool            // and not waited for
	twice   bool            // started again meanwhile
	freed   bool
	end     chan error
}

// preparedCalls are those of a communicator.
type preparedCalls struct {
	all  []*Comm // communicators of prepared calls
	idle []*Comm // those of freed calls
}

// maxPrepared is how many prepared calls a communicator can have at a time.
const maxPrepared = creationPart - maxInProgress - 1

// Prepare prepares a persistent call: each Start of the result calls f, with a
// communicator of the same ranks for this call alone, as for [Start]. All ranks
// prepare their calls, and free them, in the same order. Preparing sends nothing. A
// communicator can have 4077 prepared calls at a time; one more is an ErrArgument. The
// caller frees the result. It holds no goroutine while it is not in progress. Wait and
// Free call f, or a goroutine of its own does, as [Start] says.
func Prepare(c *Comm, f Func) (*Persistent, error) {
	if err := c.checkPart("prepare"); err != nil {
		return nil, err
	}
	p := &Persistent{comm: c, f: f, end: make(chan error, 1)}
	calls := &c.prepared
	switch n := len(calls.idle); {
	case n > 0: // its call numbers continue, so that slower ranks tell old calls from new ones
		p.own, calls.idle = calls.idle[n-1], calls.idle[:n-1]
	case len(calls.all) == maxPrepared:
		return nil, c.argumentErrorf("prepare", "%d calls are prepared: want no more on one communicator", maxPrepared)
	default:
		p.own = c.part(maxInProgress + 1 + uint32(len(calls.all)))
		calls.all = append(calls.all, p.own)
	}
	return p, nil
}

// Start starts the call and returns at once. The call must not be in progress; if it
// is, Start starts nothing, and Wait reports an ErrBusy.
func (p *Persistent) Start(ctx context.Context) {
	if p.started {
		p.twice = true
		return
	}
	p.started = true
	if p.freed {
		p.end <- fmt.Errorf("the prepared call was freed: %w", ErrClosed)
		return
	}
	p.ctx = ctx
	if p.comm.stats != nil {
		p.starter = p.comm.newStarter(p.starts, false)
		p.starts++
	}
	p.comm.job.late.add(p)
}

// run calls f once.
func (p *Persistent) run() {
	var err error
	defer func() { p.end <- err }()
	p.own.begun(p.starter)
	p.own.perform(p.ctx, p.f, &err)
}

// Wait waits until the call that was started last is done, and returns its error,
// or ErrClosed if the call was freed before. Each Start needs one Wait; a Wait without
// a Start returns an ErrArgument.
func (p *Persistent) Wait() error {
	if !p.started {
		return p.own.argumentErrorf("wait", "the prepared call was not started")
	}
	if p.take() {
		p.comm.job.late.drop(p)
		p.run()
	}
	err := <-p.end
	twice := p.twice
	p.started, p.twice, p.ctx = false, false, nil
	if err != nil {
		return located(err)
	}
	if twice {
		return p.own.newError("start", fmt.Errorf("the prepared call was in progress: %w", ErrBusy))
	}
	return nil
}

// Free releases a prepared call. If the call is in progress, Free waits for it. Free
// twice is allowed.
func (p *Persistent) Free() {
	if p.freed {
		return
	}
	p.freed = true
	if p.started {
		if p.take() {
			p.run()
		}
		p.end <- <-p.end
	}
	p.comm.prepared.idle = append(p.comm.prepared.idle, p.own)
}
