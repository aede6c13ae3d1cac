package chorale

import (
	"context"
	"fmt"
	"sync"
)

// A Persistent is a call that is prepared once and started many times. Once the
// calls that it makes are compiled, starting it allocates nothing. Its methods are
// called by one goroutine at a time.
type Persistent struct {
	comm  *Comm // on which it was prepared
	own   *Comm // the communicator that f gets
	begin chan context.Context
	end   chan error
	quit  chan struct{} // closed by Free
	free  sync.Once
}

// preparedCalls are those of a communicator.
type preparedCalls struct {
	used int     // contexts that were given to prepared calls so far
	idle []*Comm // communicators of freed calls
}

// maxPrepared is how many prepared calls a communicator can have at a time.
const maxPrepared = 1<<contextBits - maxInProgress - 1

// Prepare prepares a persistent call: each Start of the result calls f, with a
// communicator of the same ranks for this call alone. All ranks prepare their
// calls, and free them, in the same order. Preparing sends nothing. A communicator
// can have 4079 prepared calls at a time; one more is an ErrArgument. The caller
// frees the result, which holds a goroutine.
func Prepare(c *Comm, f Func) (*Persistent, error) {
	p := &Persistent{comm: c, begin: make(chan context.Context), end: make(chan error, 1), quit: make(chan struct{})}
	all := &c.prepared
	switch n := len(all.idle); {
	case n > 0: // its call numbers continue, so that slower ranks tell old calls from new ones
		p.own, all.idle = all.idle[n-1], all.idle[:n-1]
	case all.used == maxPrepared:
		return nil, c.argumentErrorf("prepare", "%d calls are prepared: want no more on one communicator", maxPrepared)
	default:
		p.own = c.withContext(maxInProgress + 1 + uint32(all.used))
		all.used++
	}
	go func() {
		for {
			select {
			case ctx := <-p.begin:
				p.end <- callRecovered(ctx, p.own, f)
			case <-p.quit:
				return
			}
		}
	}()
	return p, nil
}

// Start starts the call and returns at once. The call must not be in progress.
func (p *Persistent) Start(ctx context.Context) {
	select {
	case p.begin <- ctx:
	case <-p.quit:
		p.end <- fmt.Errorf("the prepared call was freed: %w", ErrClosed)
	}
}

// Wait waits until the call that was started last is done, and returns its error,
// or ErrClosed if the call was freed before. Each Start needs one Wait.
func (p *Persistent) Wait() error { return <-p.end }

// Free releases a prepared call that is not in progress. Free twice is allowed.
func (p *Persistent) Free() {
	p.free.Do(func() {
		close(p.quit)
		p.comm.prepared.idle = append(p.comm.prepared.idle, p.own)
	})
}
