package inproc

import (
	"context"

	"github.com/chorale-go/chorale/transport"
)

// SendEager implements [transport.EagerMessenger].
func (e *Endpoint) SendEager(ctx context.Context, to int, m transport.Match, kind string, data []byte) bool {
	return len(data) <= ringMax && e.checkSend(ctx, to, m.Context) == nil && e.job.endpoints[to].tagged.send(e.rank, m, kind, data)
}

// RecvEager implements [transport.EagerMessenger].
func (e *Endpoint) RecvEager(ctx context.Context, from int, m transport.Match, kind string, into []byte) (got transport.Received, ok bool) {
	return e.recvEager(ctx, from, m, kind, into, true)
}

// recvEager is RecvEager, which waits for a moment, or else takes what has arrived. Receives
// that are posted get theirs before.
func (e *Endpoint) recvEager(ctx context.Context, from int, m transport.Match, kind string, into []byte, waits bool) (got transport.Received, ok bool) {
	if from < 0 || from >= len(e.job.endpoints) || ctx.Err() != nil {
		return got, false
	}
	q := &e.tagged
	r := q.ringOf(from)
	for polls := 0; !r.ready(); polls++ {
		if !waits || polls == firstYield || e.job.spinning.resume.Load() != 0 {
			return got, false
		}
	}
	q.mu.Lock()
	for len(q.posted) > 0 {
		if !q.takeFirst(r) {
			q.mu.Unlock()
			return got, false
		}
	}
	return q.recvFirst(r, m, kind, into)
}

// recvFirst receives the message that is next in a ring, if a receive of this rank that comes
// next takes it. The queue is locked, and no receive is posted; recvFirst unlocks it.
func (q *taggedQueue) recvFirst(r *taggedRing, m transport.Match, kind string, into []byte) (got transport.Received, ok bool) {
	c, p := r.first()
	switch {
	case c == nil, q.messages.Held() > 0, q.endpoint.knownErr(m.Context) != nil,
		c.context != m.Context, c.tag != m.Tag && m.Tag != transport.Any, c.kind != kind, r.size(c) > len(into):
		q.mu.Unlock()
		return got, false
	case c.size == announced:
		var message ringMessage
		r.message(&message, c, p)
		r.take(p)
		q.mu.Unlock()
		got = transport.Received{From: r.from, Tag: message.Tag, Size: message.Size}
		transport.Copy(into[:message.Size], message.data, false)
		message.send.Done(nil)
		return got, true
	}
	got = transport.Received{From: r.from, Tag: c.tag, Size: int(c.size)}
	copy(into, r.contents(c, p))
	r.take(p)
	r.refund(got.Size)
	q.mu.Unlock()
	return got, true
}

// takeFirst gives the first message of a ring to the posted receive that takes it, and
// reports whether there is one. A message that goes by rendezvous is left to drain. The queue
// is locked.
func (q *taggedQueue) takeFirst(r *taggedRing) bool {
	c, pair := r.first()
	if c == nil || c.size == announced {
		return false
	}
	var m ringMessage
	r.message(&m, c, pair)
	p := q.take(&m.MessageInfo, m.context)
	if p == nil {
		return false
	}
	copy(p.data, m.data)
	q.finish(p, &m.MessageInfo, nil)
	r.refund(m.Size)
	r.take(pair)
	return true
}
