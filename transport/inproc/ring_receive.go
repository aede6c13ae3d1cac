package inproc

import "github.com/chorale-go/chorale/transport"

// recvFast receives a message that is the next one in the ring of its sender, or soon will
// be, while no other message is queued and no receive is posted.
func (e *Endpoint) recvFast(from int, m transport.Match, kind string, into []byte) (info transport.MessageInfo, ok bool) {
	if from < 0 || from >= len(e.job.endpoints) {
		return info, false
	}
	q := &e.tagged
	r := q.ringOf(from)
	for polls := 0; !r.ready(); polls++ {
		if polls == firstYield || e.job.spinning.resume.Load() != 0 {
			return info, false
		}
	}
	q.mu.Lock()
	if len(q.posted) > 0 {
		q.mu.Unlock()
		return info, false
	}
	return q.recvFirst(r, m, kind, into)
}

// recvFirst receives the message that is next in a ring, if a receive of this rank that comes
// next takes it. The queue is locked, and no receive is posted; recvFirst unlocks it.
func (q *taggedQueue) recvFirst(r *taggedRing, m transport.Match, kind string, into []byte) (info transport.MessageInfo, ok bool) {
	c, p := r.first()
	switch {
	case c == nil, q.messages.Held() > 0, q.endpoint.knownErr(m.Context) != nil,
		c.context != m.Context, c.tag != m.Tag && m.Tag != transport.Any, c.kind != kind, r.size(c) > len(into):
		q.mu.Unlock()
		return info, false
	case c.size == announced:
		message := r.message(c, p)
		r.take(p)
		q.mu.Unlock()
		transport.Copy(into[:message.Size], message.data, false)
		message.send.Done(nil)
		return message.MessageInfo, true
	}
	info = transport.MessageInfo{From: r.from, Tag: c.tag, Size: int(c.size), Type: kind}
	copy(into, r.contents(c, p))
	r.take(p)
	r.refund(info.Size)
	q.mu.Unlock()
	return info, true
}

// recvArrived is recvFast without waiting, for a receive that is started. Receives that are
// posted get theirs before.
func (e *Endpoint) recvArrived(from int, m transport.Match, kind string, into []byte) (info transport.MessageInfo, ok bool) {
	q := &e.tagged
	r := q.ringOf(from)
	if !r.ready() {
		return info, false
	}
	q.mu.Lock()
	for len(q.posted) > 0 {
		if !q.takeFirst(r) {
			q.mu.Unlock()
			return info, false
		}
	}
	return q.recvFirst(r, m, kind, into)
}

// takeFirst gives the first message of a ring to the posted receive that takes it, and
// reports whether there is one. A message that goes by rendezvous is left to drain. The queue
// is locked.
func (q *taggedQueue) takeFirst(r *taggedRing) bool {
	c, pair := r.first()
	if c == nil || c.size == announced {
		return false
	}
	m := r.message(c, pair)
	p := q.take(&m.MessageInfo, m.context)
	if p == nil {
		return false
	}
	copy(p.data, m.data)
	q.finish(p, m.MessageInfo, nil)
	r.refund(m.Size)
	r.take(pair)
	return true
}
