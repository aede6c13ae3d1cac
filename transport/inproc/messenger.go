package inproc

import (
	"context"
	"sync/atomic"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
)

var _ transport.Messenger = (*Endpoint)(nil)

// Send implements [transport.Messenger].
func (e *Endpoint) Send(ctx context.Context, to int, m transport.Match, kind string, data []byte) error {
	if err := e.checkSend(ctx, to); err != nil {
		return err
	}
	message := &match.Tagged{
		MessageInfo: transport.MessageInfo{From: e.rank, Tag: m.Tag, Size: len(data), Type: kind},
		Context:     m.Context,
		Data:        data,
	}
	queue := &e.job.endpoints[to].tagged
	if queue.enqueueEager(message) {
		return nil
	}
	var received atomic.Bool
	waiter := newTaggedWaiter(&match.Pattern{From: to, Match: m}, true)
	queue.enqueueRendezvous(message, func(error) {
		received.Store(true)
		waiter.notify()
	})
	err := e.wait(ctx, waiter, func() (bool, error) {
		if received.Load() {
			return true, nil
		}
		return false, e.peerError(to)
	})
	if err != nil && !queue.cancel(message) {
		for !received.Load() { // the receiver is copying the message
			<-waiter.changed
		}
		return nil
	}
	return err
}

// Recv implements [transport.Messenger].
func (e *Endpoint) Recv(ctx context.Context, from int, m transport.Match, kind string, into []byte) (transport.MessageInfo, error) {
	info, _, err := e.recv(ctx, &match.Pattern{From: from, Match: m}, true, kind, into)
	return info, err
}

// TryRecv implements [transport.Messenger].
func (e *Endpoint) TryRecv(ctx context.Context, from int, m transport.Match, kind string, into []byte) (info transport.MessageInfo, found bool, err error) {
	return e.recv(ctx, &match.Pattern{From: from, Match: m}, false, kind, into)
}

// recv receives the first message that matches. If wait is set it waits for one;
// otherwise found reports whether there was one.
func (e *Endpoint) recv(ctx context.Context, p *match.Pattern, wait bool, kind string, into []byte) (info transport.MessageInfo, found bool, err error) {
	message, err := e.find(ctx, p, wait, func() (*match.Tagged, error) {
		return e.tagged.dequeue(p, kind, len(into))
	})
	if message == nil {
		return transport.MessageInfo{}, false, err
	}
	if err == nil {
		copy(into, message.Data)
		if message.Rendezvous {
			message.Done(nil)
		}
	}
	return message.MessageInfo, true, err
}

// Probe implements [transport.Messenger].
func (e *Endpoint) Probe(ctx context.Context, from int, m transport.Match, wait bool) (transport.MessageInfo, bool, error) {
	p := &match.Pattern{From: from, Match: m}
	message, err := e.find(ctx, p, wait, func() (*match.Tagged, error) { return e.tagged.find(p), nil })
	if message == nil {
		return transport.MessageInfo{}, false, err
	}
	return message.MessageInfo, true, err
}

// find returns what look finds in the queue of tagged messages. If wait is set,
// it calls look until there is a message.
func (e *Endpoint) find(ctx context.Context, p *match.Pattern, wait bool, look func() (*match.Tagged, error)) (found *match.Tagged, err error) {
	if p.From != transport.Any && (p.From < 0 || p.From >= len(e.job.endpoints)) {
		return nil, &transport.RankError{Peer: p.From, Rank: e.rank, Size: len(e.job.endpoints)}
	}
	if failed := e.failed.Load(); failed != nil {
		return nil, *failed
	}
	if found, err = look(); found != nil {
		return found, err
	}
	try := func() (bool, error) {
		// In this order: a rank sends its messages before it ends.
		ended := e.peerError(p.From)
		if found, err = look(); found != nil {
			return true, err
		}
		return !wait, ended
	}
	if wait {
		err = e.wait(ctx, newTaggedWaiter(p, false), try)
	} else {
		_, err = try()
	}
	return found, err
}

// checkSend returns why this endpoint cannot send to a rank, or nil.
func (e *Endpoint) checkSend(ctx context.Context, to int) error {
	if to < 0 || to >= len(e.job.endpoints) {
		return &transport.RankError{Peer: to, Rank: e.rank, Size: len(e.job.endpoints)}
	}
	if failed := e.failed.Load(); failed != nil {
		return *failed
	}
	if err := e.peerError(to); err != nil {
		return err
	}
	return transport.Cause(ctx)
}

// peerError returns the error of a call that waits for a rank, or for any: this
// endpoint has ended, or the rank has, or one of any gave up, or all have left.
func (e *Endpoint) peerError(peer int) error {
	j := e.job
	j.mu.Lock()
	defer j.mu.Unlock()
	if failed := e.failed.Load(); failed != nil {
		return *failed
	}
	if peer != transport.Any {
		if notice := j.endpoints[peer].notice; notice != nil {
			return notice
		}
		return nil
	}
	if j.aborted != nil {
		return j.aborted
	}
	if n := len(j.endpoints); n > 1 && j.ended == n-1 {
		return &transport.PeerError{Peer: (e.rank + 1) % n, Err: transport.ErrAllLeft}
	}
	return nil
}

// wait calls try until it says that it is done or fails. Between the calls it sleeps
// until the waiter is notified or a rank has ended.
func (e *Endpoint) wait(ctx context.Context, w *taggedWaiter, try func() (done bool, err error)) error {
	e.job.addWaiting(e, 1)
	defer e.job.addWaiting(e, -1)
	e.tagged.addWaiter(w)
	defer e.tagged.removeWaiter(w)
	for {
		if done, err := try(); done || err != nil {
			return err
		}
		select {
		case <-w.changed:
		case <-ctx.Done():
			return transport.Cause(ctx)
		}
	}
}

// addWaiting counts the calls of an endpoint that wait for tagged messages, so that
// a rank that ends knows which ranks to wake.
func (j *Job) addWaiting(e *Endpoint, n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.waiting == nil {
		j.waiting = make(map[*Endpoint]int)
	}
	if j.waiting[e] += n; j.waiting[e] == 0 {
		delete(j.waiting, e)
	}
}
