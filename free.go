package chorale

import (
	"errors"
	"fmt"
	"sync/atomic"
)

// Free releases a communicator that is no longer used, with all that it caches. Each
// rank calls it when its own last call is done, whether or not other ranks are still
// in theirs. Later calls on it fail with ErrClosed: collectives, Split, Start, Prepare,
// starts of prepared calls, and tagged messages. A call in progress, in another
// goroutine, is not disturbed, nor is a nonblocking call that was started.
//
// Free twice is allowed. The communicator of [Main], [Run], [Join] or [NewComm], and
// those that functions of [Start] and [Prepare] get, need no Free, and ignore it.
func (c *Comm) Free() {
	if c == nil || c.context == 0 || c.isPart() {
		return
	}
	c.job.mu.Lock()
	closed := c.identity.closed
	c.identity.closed = true
	c.job.mu.Unlock()
	if closed {
		return
	}
	c.close()
	for _, q := range c.nonblocking.queues {
		if q != nil {
			q.free()
		}
	}
	for _, own := range c.prepared.all {
		own.close()
	}
	c.creation.free()
	c.resilience.free()
}

// free closes the queue's communicator when the calls that were started are done.
func (q *queue) free() {
	if done, _ := q.last.Test(); done {
		q.comm.close()
		return
	}
	go func() {
		<-q.last.Done()
		q.comm.close()
	}()
}

// isPart reports whether c is the communicator of a nonblocking or prepared call.
func (c *Comm) isPart() bool { return c.context%(1<<contextBits) != 0 }

// close ends one context of a freed communicator, now or when its call is done.
func (c *Comm) close() {
	if c.state.CompareAndSwap(busy, freeing) {
		return
	}
	if c.state.CompareAndSwap(idle, freed) {
		c.release()
	}
}

// end ends a collective.
func (c *Comm) end() {
	if !c.state.CompareAndSwap(busy, idle) {
		c.state.Store(freed)
		c.release()
	}
}

// release releases the context of a freed communicator, unless a tagged message is in
// progress there, or it was released. When all contexts of the communicator are
// released, its number is free, unless it was revoked.
func (c *Comm) release() {
	j, id := c.job, c.identity
	j.mu.Lock()
	defer j.mu.Unlock()
	inProgress, unreceived := c.tagged.counts()
	if c.released || inProgress > 0 {
		return
	}
	c.released = true
	j.endpoint.Release(c.context)
	c.cache.clear()
	c.memory.Free()
	c.packing.close()
	if c.splitter != nil {
		c.splitter.cache.clear()
		c.splitter.memory.Free()
	}
	id.usage.unreceived += unreceived
	if c.sequence != id.base {
		id.usage.calls += mix64(uint64(c.context)<<32 | uint64(c.sequence))
	}
	j.numbers.calls = max(j.numbers.calls, c.sequence)
	if id.open--; id.open > 0 {
		return
	}
	id.freeAllocated(j.endpoint)
	revoked := j.endpoint.Revoked(id.number) != nil
	j.endpoint.SetMembers(id.number, nil)
	if !revoked { // otherwise the number is never used again
		j.numbers.freed[id.number] = id
		j.numbers.drop(id.number/64, 1<<(id.number%64))
	}
}

// errNil is the error of a call on a nil communicator.
var errNil = argumentError{errors.New("the communicator is nil: this rank is in none, as after a Split with a negative color")}

// unusable returns why a call cannot begin now.
func (c *Comm) unusable(call string) error {
	switch {
	case c == nil:
		return c.newError(call, errNil)
	case c.state.Load() >= freeing:
		return c.newError(call, fmt.Errorf("the communicator was freed: %w", ErrClosed))
	}
	return c.newError(call, ErrBusy)
}

// A taggedUse counts the calls in progress of Send, Recv and Probe in its low bits, and
// the messages sent less those received in the others.
type taggedUse struct{ atomic.Int64 }

const taggedBits = 24

func (u *taggedUse) counts() (inProgress, unreceived int64) {
	v := u.Load()
	return v & (1<<taggedBits - 1), v >> taggedBits
}

// beginMessage begins a call of Send, Recv or Probe.
func (c *Comm) beginMessage(call string) error {
	if c == nil {
		return c.unusable(call)
	}
	c.tagged.Add(1)
	if c.state.Load() >= freeing {
		c.endMessage(0)
		return c.unusable(call)
	}
	return nil
}

// endMessage ends a call that beginMessage has begun, and that has sent or, if negative, received
// some messages.
func (c *Comm) endMessage(sent int64) {
	c.tagged.Add(sent<<taggedBits - 1)
	if c.state.Load() == freed {
		c.release()
	}
}
