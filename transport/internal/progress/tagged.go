package progress

import (
	"context"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
)

// Tagged returns the queue of the tagged messages that have not been received.
func (e *Engine) Tagged() *match.TaggedQueue { return &e.tagged }

// TryRecv implements [transport.Messenger], as Recv does. Receives that are posted come
// first: what they match is not queued.
func (e *Engine) TryRecv(ctx context.Context, from int, m transport.Match, typeName string, into []byte) (info transport.MessageInfo, found bool, err error) {
	e.Lock()
	defer e.Unlock()
	p := &match.Pattern{From: from, Match: m}
	t, err := e.find(ctx, p, false)
	if t == nil {
		return transport.MessageInfo{}, false, err
	}
	info = t.MessageInfo
	r := e.newRequest()
	e.StartRecvLocked(ctx, r, info.From, transport.Match{Context: m.Context, Tag: info.Tag}, typeName, into)
	e.wait(r)
	info, err = r.Info, r.Err
	e.recycle(r)
	return info, true, err
}

// Probe implements [transport.Messenger].
func (e *Engine) Probe(ctx context.Context, from int, m transport.Match, wait bool) (transport.MessageInfo, bool, error) {
	e.Lock()
	defer e.Unlock()
	t, err := e.find(ctx, &match.Pattern{From: from, Match: m}, wait)
	if t == nil {
		return transport.MessageInfo{}, false, err
	}
	return t.MessageInfo, true, nil
}

// find returns the first message that matches and leaves it queued. If wait is set
// it waits for one; otherwise it returns nil if there is none.
func (e *Engine) find(ctx context.Context, p *match.Pattern, wait bool) (*match.Tagged, error) {
	if p.From != transport.Any && (p.From < 0 || p.From >= e.Size) {
		return nil, e.rankError(p.From)
	}
	for polled := false; ; {
		if err := e.ErrIn(p.Context); err != nil {
			return nil, err
		}
		if t := e.tagged.Find(p); t != nil {
			return t, nil
		}
		if !polled { // a rank that has left may have sent before
			e.Guard(func() { e.transport.Poll(p.From, wait) })
			polled = true
			continue
		}
		if err := e.transport.PeerError(p.From, p.Context); err != nil {
			return nil, err
		}
		switch {
		case !wait:
			return nil, nil
		case ctx.Err() != nil:
			return nil, transport.Cause(ctx)
		}
		if err := e.awaitMatch(ctx, p); err != nil {
			return nil, err
		}
		polled = false
	}
}

// awaitMatch returns when a message has arrived that matches, or when something
// else makes it worth while to look again.
func (e *Engine) awaitMatch(ctx context.Context, p *match.Pattern) error {
	o := e.begin(ctx, probeOp)
	defer e.Leave(o)
	o.subject.pattern = *p
	e.transport.AddWaiters(p.From, 1)
	defer e.transport.AddWaiters(p.From, -1)
	return o.Await()
}

// received notes that an eager message was received. Returning credits may bring in
// other messages, so that the memory of this one is recycled afterwards.
func (e *Engine) received(t *match.Tagged) {
	if t.From == e.Rank {
		e.own.Return(t.Size + transport.MessageCost)
	} else {
		e.Guard(func() { e.transport.ReturnCredits(t.From, t.Size) })
	}
	e.tagged.Recycle(t)
}

// ReleaseTagged drops the eager tagged messages of a context.
func (e *Engine) ReleaseTagged(context uint32) {
	if e.end.closed {
		return
	}
	for _, t := range e.tagged.Release(context) {
		e.received(t)
	}
}
