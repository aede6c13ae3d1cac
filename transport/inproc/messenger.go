package inproc

import (
	"context"

	"github.com/chorale-go/chorale/transport"
)

var _ transport.Messenger = (*Endpoint)(nil)

// Send implements [transport.Messenger].
func (e *Endpoint) Send(ctx context.Context, to int, match transport.Match, kind string, data []byte) error {
	if err := e.checkSend(ctx, to); err != nil {
		return err
	}
	m := &taggedMessage{
		MessageInfo: transport.MessageInfo{From: e.rank, Tag: match.Tag, Size: len(data), Type: kind},
		context:     match.Context,
		data:        data,
	}
	queue := &e.job.endpoints[to].unexpected
	queue.enqueue(m)
	if m.received == nil {
		return nil
	}
	err := e.waitUntil(ctx, func() (bool, error) {
		select {
		case <-m.received:
			return true, nil
		default:
			return false, e.peerError(to)
		}
	})
	if err != nil && !queue.cancel(m) {
		<-m.received // the receiver is copying it
		return nil
	}
	return err
}

// Recv implements [transport.Messenger].
func (e *Endpoint) Recv(ctx context.Context, from int, match transport.Match, kind string, into []byte) (transport.MessageInfo, error) {
	m, err := e.find(ctx, from, match, true, func(m *taggedMessage) (dequeue bool, err error) {
		switch {
		case m.Type != kind:
			return false, &transport.TypeError{Peer: m.From, Got: m.Type, Want: kind}
		case m.Size > len(into):
			return false, &transport.SizeError{Peer: m.From, Got: m.Size, Want: len(into)}
		}
		return true, nil
	})
	if m == nil {
		return transport.MessageInfo{}, err
	}
	if err == nil {
		copy(into, m.data)
		if m.received != nil {
			close(m.received)
			e.job.endpoints[m.From].unexpected.wake()
		}
	}
	return m.MessageInfo, err
}

// Probe implements [transport.Messenger].
func (e *Endpoint) Probe(ctx context.Context, from int, match transport.Match, wait bool) (transport.MessageInfo, bool, error) {
	m, err := e.find(ctx, from, match, wait, func(*taggedMessage) (bool, error) { return false, nil })
	if m == nil {
		return transport.MessageInfo{}, false, err
	}
	return m.MessageInfo, true, err
}

// find returns the first tagged message that matches, and waits for one if wait is
// set. Inspect says whether the message leaves the queue.
func (e *Endpoint) find(ctx context.Context, from int, match transport.Match, wait bool, inspect func(*taggedMessage) (dequeue bool, err error)) (found *taggedMessage, err error) {
	if from != transport.Any && (from < 0 || from >= len(e.job.endpoints)) {
		return nil, &transport.RankError{Peer: from, Rank: e.rank, Size: len(e.job.endpoints)}
	}
	if failed := e.failed.Load(); failed != nil {
		return nil, *failed
	}
	err = e.waitUntil(ctx, func() (bool, error) {
		// In this order: a rank sends its messages before it ends.
		ended := e.peerError(from)
		if found, err = e.unexpected.match(from, match, inspect); found != nil {
			return true, err
		}
		return !wait, ended
	})
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

// peerError returns the error of a call that waits for a rank, or for any, if this
// endpoint or all of those ranks have ended.
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
	if n := len(j.endpoints); n > 1 && j.ended == n-1 {
		return &transport.PeerError{Peer: (e.rank + 1) % n, Err: transport.ErrLeft, Reason: "so have all others"}
	}
	return nil
}

// waitUntil calls try until it says that it is done or fails. Between the calls it
// sleeps until a tagged message has arrived here, one that this rank sent has been
// received, or a rank has ended.
func (e *Endpoint) waitUntil(ctx context.Context, try func() (done bool, err error)) error {
	e.job.addWaiting(e, 1)
	defer e.job.addWaiting(e, -1)
	for {
		changed := e.unexpected.changes()
		if done, err := try(); done || err != nil {
			return err
		}
		select {
		case <-changed:
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
