package shm

import (
	"context"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
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

// sendEager writes an eager message for which there are credits and room. It does not poll:
// the peer's status word says whether the peer has gone.
func (e *Endpoint) sendEager(ctx context.Context, to int, m transport.Match, typeName string, data []byte) bool {
	e.engine.Lock()
	defer e.unlock()
	if e.look(); !e.engine.IsPeer(to) || e.engine.ErrIn(m.Context) != nil || ctx.Err() != nil {
		return false
	}
	l := &e.links[to]
	if l.err != nil || l.state.lifecycle() >= left || len(l.tagged.frames) > 0 ||
		len(typeName) > typeMax || len(data)+len(typeName) > e.eagerMax() || !l.tagged.Credits.Use(len(data)) {
		return false
	}
	f := taggedFrame{kind: eagerFrame, match: m, typeName: typeName}
	if !l.writeTagged(&f, data) {
		l.tagged.Credits.Refund(len(data))
		return false
	}
	return true
}

// recvEager receives an eager message while nothing else is in progress, if that is the next
// frame of its sender, and arrives soon.
func (e *Endpoint) recvEager(ctx context.Context, from int, m transport.Match, typeName string, into []byte) (info transport.MessageInfo, ok bool) {
	e.engine.Lock()
	defer e.unlock()
	if e.look(); !e.engine.Idle() || e.engine.ErrIn(m.Context) != nil || e.polls.terminated || e.polls.unflushed || e.engine.Tagged().Held() > 0 || ctx.Err() != nil {
		return info, false
	}
	links := e.links
	if from != transport.Any {
		if !e.engine.IsPeer(from) {
			return info, false
		}
		links = links[from : from+1]
	}
	p := match.Pattern{From: from, Match: m}
	for polls := e.fastTaggedPolls(); polls > 0 && e.engine.Entering.Load() == 0; polls -= len(links) {
		for i := range links {
			if c, k := links[i].next(); c != nil {
				return links[i].takeEager(c, k, &p, typeName, into)
			}
		}
	}
	return info, false
}

// recvArrived receives an eager message that has arrived, if that is the next frame of its
// sender. The receives that were posted before come first: they get theirs. So a rank that
// starts many receives posts those alone that are ahead of their sender.
func (e *Endpoint) recvArrived(ctx context.Context, from int, m transport.Match, typeName string, into []byte) (info transport.MessageInfo, ok bool) {
	if e.look(); !e.engine.IsPeer(from) || len(e.engine.Ops()) > 0 || e.engine.ErrIn(m.Context) != nil || e.polls.terminated || e.polls.unflushed || e.engine.Tagged().Held() > 0 || ctx.Err() != nil {
		return info, false
	}
	l := &e.links[from]
	for {
		c, k := l.next()
		if c == nil || !k.isEager() || l.err != nil {
			return info, false
		}
		if !e.engine.AnyPosted() || !l.deliverEager(c, k) {
			return l.takeEager(c, k, &match.Pattern{From: from, Match: m}, typeName, into)
		}
	}
}

// deliverEager gives the message in a cell to the posted receive that takes it, and reports
// whether there is one.
func (l *link) deliverEager(c *cell, k frameKind) bool {
	info, data, context, ok := l.readEager(c, k)
	if !ok {
		return false
	}
	r := l.e.engine.Posted(&info, context)
	if r == nil || !l.hold(info.Size) {
		return false
	}
	l.landEager(r, c, k, &info, data)
	return true
}

// takeEager receives the message in a cell, if a receive can take it.
func (l *link) takeEager(c *cell, k frameKind, p *match.Pattern, typeName string, into []byte) (info transport.MessageInfo, ok bool) {
	if !k.isEager() || l.err != nil {
		return info, false
	}
	info, data, context, ok := l.readEager(c, k)
	if !ok || !p.Takes(&info, context) || info.Type != typeName || len(data) > len(into) || !l.hold(info.Size) {
		return info, false
	}
	copy(into, data)
	l.takeEagerFrame(c, k)
	(*hooks)(l.e).ReturnCredits(l.peer, info.Size)
	return info, true
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
