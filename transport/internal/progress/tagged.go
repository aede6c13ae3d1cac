package progress

import (
	"context"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
)

// Tagged returns the queue of the tagged messages that have not been received.
func (e *Engine) Tagged() *match.TaggedQueue { return &e.tagged }

// Arrived adds a tagged message, and ends every wait for such a one.
func (e *Engine) Arrived(m *match.Tagged) {
	e.tagged.Add(m)
	for _, o := range e.ops {
		if o.kind == receiveOp && o.subject.pattern.Matches(m) {
			o.Finish(nil)
		}
	}
}

// CheckSend returns why no tagged message can be sent to a rank, or nil.
func (e *Engine) CheckSend(ctx context.Context, to int) error {
	if to < 0 || to >= e.Size {
		return e.rankError(to)
	}
	if err := e.Err(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return transport.Cause(ctx)
	}
	return nil
}

// SendSelf sends a tagged message of this rank to itself.
func (e *Engine) SendSelf(ctx context.Context, m transport.Match, typeName string, data []byte) error {
	info := transport.MessageInfo{From: e.Rank, Tag: m.Tag, Size: len(data), Type: typeName}
	if len(data) <= match.EagerMax && e.own.Use(len(data)) {
		t := e.tagged.New(len(data))
		t.MessageInfo, t.Context = info, m.Context
		copy(t.Data, data)
		e.Arrived(t)
		return nil
	}
	t := &match.Tagged{MessageInfo: info, Context: m.Context, Data: data, Rendezvous: true}
	err := e.run(ctx, transferOp, noPeer, func(o *Op) {
		t.Done = o.Finish
		e.Arrived(t)
	})
	if err != nil {
		e.tagged.Remove(t)
	}
	return err
}

// Recv implements [transport.Messenger]. When ctx ends while the contents of a
// rendezvous message are on their way, the endpoint's part in the job ends.
func (e *Engine) Recv(ctx context.Context, from int, m transport.Match, typeName string, into []byte) (transport.MessageInfo, error) {
	info, _, err := e.recv(ctx, &match.Pattern{From: from, Match: m}, true, typeName, into)
	return info, err
}

// TryRecv implements [transport.Messenger], as Recv does.
func (e *Engine) TryRecv(ctx context.Context, from int, m transport.Match, typeName string, into []byte) (info transport.MessageInfo, found bool, err error) {
	return e.recv(ctx, &match.Pattern{From: from, Match: m}, false, typeName, into)
}

// recv receives the first message that matches. If wait is set it waits for one;
// otherwise found reports whether there was one.
func (e *Engine) recv(ctx context.Context, p *match.Pattern, wait bool, typeName string, into []byte) (info transport.MessageInfo, found bool, err error) {
	e.Lock()
	defer e.Unlock()
	for {
		t, err := e.find(ctx, p, wait)
		switch {
		case t == nil:
			return transport.MessageInfo{}, false, err
		case t.Type != typeName:
			return t.MessageInfo, true, &transport.TypeError{Peer: t.From, Got: t.Type, Want: typeName}
		case t.Size > len(into):
			return t.MessageInfo, true, &transport.SizeError{Peer: t.From, Got: t.Size, Want: len(into)}
		case t.Rendezvous && ctx.Err() != nil:
			return transport.MessageInfo{}, false, transport.Cause(ctx)
		}
		e.tagged.Remove(t)
		info := t.MessageInfo
		switch {
		case !t.Rendezvous:
			copy(into, t.Data)
			e.received(t)
			return info, true, nil
		case t.From == e.Rank:
			copy(into, t.Data)
			t.Done(nil)
			return info, true, nil
		}
		if err := e.requestContents(ctx, t, into[:t.Size]); err != match.ErrWithdrawn {
			return info, true, err
		}
	}
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
		if err := e.Err(); err != nil {
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
		if err := e.transport.PeerError(p.From); err != nil {
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
	o := e.begin(ctx, receiveOp, p.From)
	defer e.Leave(o)
	o.subject.pattern = *p
	e.transport.AddWaiters(p.From, 1)
	defer e.transport.AddWaiters(p.From, -1)
	return o.Await()
}

// requestContents asks the sender of a rendezvous message for its contents, and returns
// when they are in into.
func (e *Engine) requestContents(ctx context.Context, t *match.Tagged, into []byte) error {
	t.Data = into
	e.tagged.Request(t)
	defer e.tagged.EndRequest(t)
	o := e.begin(ctx, transferOp, t.From)
	defer e.Leave(o)
	o.subject.committed = true
	o.subject.pattern.Match = transport.Match{Context: t.Context, Tag: t.Tag}
	t.Done = o.Finish
	e.transport.AddWaiters(t.From, 1)
	defer e.transport.AddWaiters(t.From, -1)
	e.transport.SendCTS(t.From, t.Number)
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
