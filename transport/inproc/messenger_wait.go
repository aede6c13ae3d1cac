package inproc

// This file has what waits for a request, ends it early, or makes progress for those that were
// started.

import "github.com/chorale-go/chorale/transport"

// Wait implements [transport.Messenger]. A rank reads its rings, and has nothing else to
// do for its requests: its peers copy.
func (e *Endpoint) Wait(r *transport.Request) {
	if r.Done() {
		return
	}
	q := &e.tagged
	m, from := q.message(r)
	var b backoff
	copied := false
	for b.begin(); !r.Done(); {
		spins := b.polls < pausedPolls && e.job.spinning.resume.Load() == 0
		if q.arrived(from) {
			q.poll(from)
		} else if !spins && !copied {
			e.makeEager(m)
			copied = true
		} else if !b.spin(&e.job.spinning) {
			e.sleepUntilDone(r)
			b.slept(&e.job.spinning)
		}
	}
}

// sleepUntilDone returns when a request is done, or ends it if that is why it never will
// be.
func (e *Endpoint) sleepUntilDone(r *transport.Request) {
	e.tagged.mu.Lock()
	if r.Done() {
		e.tagged.mu.Unlock()
		return
	}
	m := r.State.(*message)
	ctx, from, context := m.ctx, m.pattern.From, m.pattern.Context
	w := taggedWaiters.Get().(*taggedWaiter)
	w.pattern, w.request, w.number, w.message = m.pattern, r, m.number, "recv"
	if m.sends {
		w.message = "send"
	}
	e.tagged.mu.Unlock()
	_ = w.wait(ctx, e, func() (bool, error) {
		e.tagged.poll(from)
		if r.Done() {
			return true, nil
		}
		err := e.peerError(from, context)
		if err == nil {
			err = transport.Cause(ctx)
		}
		if err == nil || e.cancel(r, err) {
			return err != nil, nil
		}
		return false, nil // a peer is copying the message
	})
}

// cancel ends a request with an error, unless its message is being copied.
func (e *Endpoint) cancel(r *transport.Request, err error) bool {
	e.tagged.mu.Lock()
	m, ok := r.State.(*message)
	if !ok {
		e.tagged.mu.Unlock()
		return true
	}
	number := m.number
	e.tagged.mu.Unlock()
	return e.cancelMessage(m, number, err)
}

// cancelMessage is cancel for a message of a number. Once it is done, its memory is used for
// another, or for none.
func (e *Endpoint) cancelMessage(m *message, number uint64, err error) bool {
	e.tagged.mu.Lock()
	if m.number != number {
		e.tagged.mu.Unlock()
		return true
	}
	if !m.sends {
		canceled := e.tagged.unpost(m)
		if canceled {
			e.tagged.finish(m, nil, err)
		}
		e.tagged.mu.Unlock()
		return canceled
	}
	defer e.tagged.mu.Unlock()
	to, sent := m.pattern.From, m.sent
	m.pinned++
	e.tagged.mu.Unlock()
	canceled := e.job.endpoints[to].tagged.cancel(e.rank, sent)
	e.tagged.mu.Lock()
	e.tagged.unpin(m)
	if canceled {
		e.tagged.finish(m, nil, err)
	}
	return canceled
}

// Cancel implements [transport.Messenger].
func (e *Endpoint) Cancel(r *transport.Request, err error) { e.cancel(r, err) }

// makeEager copies the message of a send to a receive that waits for it, or else, if it is
// short enough, to the queue of its receiver. So the send is done although its receiver comes
// late, or is in a call that does not look at its rings.
func (e *Endpoint) makeEager(m inProgress) {
	own := &e.tagged
	own.mu.Lock()
	defer own.mu.Unlock()
	if m.message == nil || m.message.number != m.number || !m.sends {
		return
	}
	to, sent := m.pattern.From, m.sent
	m.pinned++
	own.mu.Unlock()
	eager := e.job.endpoints[to].tagged.makeEager(e.rank, sent)
	own.mu.Lock()
	own.unpin(m.message)
	if eager {
		m.sent = nil // it is the queue's
		own.finish(m.message, nil, nil)
	}
}

// Progress implements [transport.Messenger]. It ends the receives whose messages come
// no more.
func (e *Endpoint) Progress() {
	e.tagged.mu.Lock()
	e.tagged.drain(transport.Any)
	var started []inProgress
	for _, m := range e.tagged.posted {
		started = append(started, inProgress{m, m.number})
	}
	for _, m := range e.tagged.sends {
		started = append(started, inProgress{m, m.number})
	}
	e.tagged.mu.Unlock()
	for _, m := range started {
		e.makeEager(m)
	}
	e.endHopeless(started)
}

// An inProgress is a message that was in progress under the lock. Its request is not kept:
// once that is done, another rank may use its memory.
type inProgress struct {
	*message
	number uint64
}

// endHopeless ends messages that will never be done.
func (e *Endpoint) endHopeless(started []inProgress) {
	for _, m := range started {
		e.tagged.mu.Lock()
		if m.message.number != m.number {
			e.tagged.mu.Unlock()
			continue
		}
		ctx, peer, context := m.ctx, m.pattern.From, m.pattern.Context
		e.tagged.mu.Unlock()
		err := e.peerError(peer, context)
		if err == nil {
			err = transport.Cause(ctx)
		}
		if err != nil {
			e.cancelMessage(m.message, m.number, err)
		}
	}
}
