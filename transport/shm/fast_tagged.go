package shm

import (
	"context"

	"github.com/chorale-go/chorale/transport"
)

// This file has the fast paths of tagged messages. They use the frames of tagged.go, and
// keep no state of their own: a call that cannot go this way has changed nothing, and
// goes through the engine.

// fastTaggedPolls is fastPolls for a tagged message: a rank computes between two of them
// more often than between two steps of a call.
const fastTaggedPolls = 400

// polls returns how often a fast path polls in vain.
func (e *Endpoint) fastTaggedPolls() int {
	if e.wait.Oversubscribed || e.wait.shortWaits > 0 || !e.wait.MaySpin() {
		return 1
	}
	return fastTaggedPolls
}

// SendEager implements [transport.EagerMessenger].
func (e *Endpoint) SendEager(ctx context.Context, to int, m transport.Match, typeName string, data []byte) bool {
	e.engine.Lock()
	sent := e.sendEager(ctx, to, m, typeName, data)
	e.unlock()
	return sent
}

// lookAndSendEager is SendEager after look.
func (e *Endpoint) lookAndSendEager(ctx context.Context, to int, m transport.Match, typeName string, data []byte) bool {
	e.engine.Lock()
	defer e.unlock()
	e.look()
	return e.sendEager(ctx, to, m, typeName, data)
}

// sendEager writes an eager message for which there are credits and room. It does not poll:
// the peer's status word says whether the peer has gone.
func (e *Endpoint) sendEager(ctx context.Context, to int, m transport.Match, typeName string, data []byte) bool {
	if e.engine.ErrIn(m.Context) != nil || !e.engine.IsPeer(to) || e.toldMore() || ctx.Err() != nil {
		return false
	}
	l := &e.links[to]
	if l.hasGone() || len(l.tagged.frames) > 0 ||
		len(typeName) > typeMax || len(data)+len(typeName) > e.eagerMax() || !l.tagged.Credits.Use(len(data)) {
		return false
	}
	if !l.writeEager(m, typeName, data) {
		l.tagged.Credits.Refund(len(data))
		return false
	}
	return true
}

// writeEager writes an eager message if there is room.
func (l *link) writeEager(m transport.Match, typeName string, data []byte) bool {
	if l.writeEagerPair(m, typeName, data) {
		return true
	}
	if len(typeName)+len(data) > inlineMax {
		return l.writeTagged(&taggedFrame{kind: eagerFrame, match: m, typeName: typeName}, data)
	}
	if !l.out.hasCell() {
		return false
	}
	c := l.out.next()
	c.setTagged(len(typeName)+len(data), m.Context, m.Tag, len(typeName))
	c.setEager(typeName, data)
	l.publish(c, eagerFrame)
	return true
}

// RecvEager implements [transport.EagerMessenger].
func (e *Endpoint) RecvEager(ctx context.Context, from int, m transport.Match, typeName string, into []byte) (transport.Received, bool) {
	e.engine.Lock()
	got, ok := e.recvEager(ctx, from, m, typeName, into, true)
	e.unlock()
	return got, ok
}

// StartRecvEager implements [transport.EagerMessenger].
func (e *Endpoint) StartRecvEager(ctx context.Context, r *transport.Request, from int, m transport.Match, typeName string, into []byte) (got transport.Received, ok bool) {
	e.engine.Lock()
	defer e.unlock()
	e.look()
	if got, ok = e.recvEager(ctx, from, m, typeName, into, false); ok {
		return got, true
	}
	if e.engine.IsPeer(from) && e.engine.ErrIn(m.Context) == nil && !e.links[from].hasGone() { // whoever waits polls
		e.engine.PostRecv(ctx, r, from, m, typeName, into, true)
	} else {
		e.engine.StartRecvLocked(ctx, r, from, m, typeName, into)
	}
	return got, false
}

// lookAndRecvEager is RecvEager for a receive that waits, after look.
func (e *Endpoint) lookAndRecvEager(ctx context.Context, from int, m transport.Match, typeName string, into []byte) (transport.Received, bool) {
	e.engine.Lock()
	defer e.unlock()
	e.look()
	return e.recvEager(ctx, from, m, typeName, into, true)
}

// recvEager receives an eager message that is the next frame of its sender, while no operation
// is in progress. The receives that were posted before come first: they get theirs. So a rank
// that starts many receives posts those alone that are ahead of their sender. If waits is set
// and no message is in progress, the message may come soon.
func (e *Endpoint) recvEager(ctx context.Context, from int, m transport.Match, typeName string, into []byte, waits bool) (r transport.Received, ok bool) {
	if e.engine.ErrIn(m.Context) != nil || e.toldMore() || len(e.engine.Ops()) > 0 || e.polls.terminated || e.polls.unflushed || e.engine.Tagged().Held() > 0 || ctx.Err() != nil {
		return r, false
	}
	links := e.links
	if e.engine.IsPeer(from) {
		links = links[from : from+1]
	} else if from != transport.Any || e.engine.Started() {
		return r, false
	}
	polls := 1
	if waits && !e.engine.Started() {
		polls = e.fastTaggedPolls()
	}
	for ; polls > 0; polls -= len(links) {
		for i := range links {
			l := &links[i]
			c, k := l.next()
			for c != nil && e.engine.AnyPosted() && l.deliverEager(c, k) {
				c, k = l.next()
			}
			if c != nil {
				return l.takeEager(c, k, m, typeName, into)
			}
		}
		if e.engine.Entering.Load() > 0 {
			break
		}
	}
	return r, false
}

// deliverEager gives the message in a cell to the posted receive that takes it, and reports
// whether there is one.
func (l *link) deliverEager(c *cell, k frameKind) bool {
	if !k.isEager() || l.err != nil {
		return false
	}
	var info transport.MessageInfo
	data, context, ok := l.readEager(c, k, &info)
	if !ok || !l.mayHold(info.Size) {
		return false
	}
	r := l.e.engine.Posted(&info, context)
	if r == nil {
		return false
	}
	l.landEager(r, c, k, &info, data)
	return true
}

// takeEager receives the message in a cell, if a receive can take it. The cell is read once.
func (l *link) takeEager(c *cell, k frameKind, m transport.Match, typeName string, into []byte) (r transport.Received, ok bool) {
	if !k.isEager() || l.err != nil {
		return r, false
	}
	h := c.tagged()
	size, typeLen, context, tag := h.size, h.typeLen, h.context, h.tagValue()
	b, ok := l.eagerBytes(c, k, size)
	if !ok || typeLen > size || context != m.Context || tag != m.Tag && m.Tag != transport.Any || tag < 0 || string(b[:typeLen]) != typeName {
		return r, false
	}
	b = b[typeLen:]
	if len(b) > len(into) || !l.mayHold(len(b)) {
		return r, false
	}
	copy(into, b)
	r = transport.Received{From: l.peer, Tag: tag, Size: len(b)}
	if k == eagerPairFrame {
		l.takePair(c)
	} else {
		l.takeInline()
	}
	l.returnCredits(r.Size)
	return r, true
}

// waitFast makes progress until a request is done, if that is soon and no operation is in
// progress.
func (e *Endpoint) waitFast(r *transport.Request) {
	e.engine.Lock()
	defer e.unlock()
	if len(e.engine.Ops()) > 0 || e.polls.terminated {
		return
	}
	for polls := e.fastTaggedPolls(); polls > 0 && !r.Done() && e.engine.Err() == nil && e.engine.Entering.Load() == 0; polls -= max(1, len(e.polls.busy)) {
		e.advance()
		e.wakePeers()
	}
	if e.out.promoter.due != nil {
		e.out.promoter.move(e)
	}
}
