package progress

import (
	"context"
	"slices"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
)

// StartSend implements [transport.Messenger].
func (e *Engine) StartSend(ctx context.Context, r *transport.Request, to int, m transport.Match, typeName string, data []byte) {
	e.Lock()
	defer e.Unlock()
	e.StartSendLocked(ctx, r, to, m, typeName, data)
}

// Send implements [transport.Messenger].
func (e *Engine) Send(ctx context.Context, to int, m transport.Match, typeName string, data []byte) error {
	e.Lock()
	defer e.Unlock()
	r := e.newRequest()
	e.StartSendLocked(ctx, r, to, m, typeName, data)
	e.wait(r)
	err := r.Err
	e.recycle(r)
	return err
}

// newRequest returns a request for a call that waits.
func (e *Engine) newRequest() *transport.Request {
	if n := len(e.messages.requests); n > 0 {
		r := e.messages.requests[n-1]
		e.messages.requests = e.messages.requests[:n-1]
		return r
	}
	return new(transport.Request)
}

// recycle keeps a request that is done.
func (e *Engine) recycle(r *transport.Request) {
	r.Reset()
	e.messages.requests = append(e.messages.requests, r)
}

// StartSendLocked is StartSend for a transport that has locked the engine.
func (e *Engine) StartSendLocked(ctx context.Context, r *transport.Request, to int, m transport.Match, typeName string, data []byte) {
	if err := e.checkSend(ctx, to, m.Context); err != nil {
		r.Finish(transport.MessageInfo{}, err)
		return
	}
	if to == e.Rank {
		e.sendSelf(ctx, r, m, typeName, data)
		return
	}
	sent, err := e.transport.SendEager(to, m, typeName, data)
	if sent || err != nil && err != ErrNoLink && err != ErrNoRoom {
		r.Finish(transport.MessageInfo{}, err)
		return
	}
	if revoked := e.revokedIn(m.Context); revoked != nil { // SendEager has heard of it
		r.Finish(transport.MessageInfo{}, revoked)
		return
	}
	s := e.newMessage(ctx, r, to, typeName, data)
	s.pattern = match.Pattern{From: to, Match: m}
	switch err {
	case ErrNoLink:
		s.enter(unlinked)
	case ErrNoRoom:
		s.enter(unwritten)
		e.transport.SendWhenRoom(s)
	default:
		s.announce()
	}
	e.Interrupt()
}

// checkSend returns why no tagged message can be sent to a rank, or nil.
func (e *Engine) checkSend(ctx context.Context, to int, in uint32) error {
	if to < 0 || to >= e.Size {
		return e.rankError(to)
	}
	if err := e.ErrIn(in); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return transport.Cause(ctx)
	}
	return nil
}

// announce announces a message that goes by rendezvous, unless too many are announced.
func (m *Message) announce() {
	m.link, m.wire = m.engine.transport.Wire(m.peer)
	m.enter(keptBack)
	m.link.keepBack(m)
	m.link.AnnounceKeptBack()
}

// LinkUp sends the messages that wait for the link to a peer, in order.
func (e *Engine) LinkUp(peer int) {
	var waiting []*Message
	for _, m := range e.messages.inProgress {
		if m.phase == unlinked && m.peer == peer {
			waiting = append(waiting, m)
		}
	}
	slices.SortFunc(waiting, func(a, b *Message) int { return int(int64(a.number - b.number)) })
	for _, m := range waiting {
		if m.request == nil {
			continue // an earlier one has found that the peer has gone
		}
		sent, err := e.transport.SendEager(peer, m.pattern.Match, m.typeName, m.data)
		switch {
		case m.request == nil: // this one has found it
		case sent || err != nil:
			m.finish(err)
		default:
			m.exit()
			m.announce()
		}
	}
}

// sendSelf sends a tagged message of this rank to itself.
func (e *Engine) sendSelf(ctx context.Context, r *transport.Request, m transport.Match, typeName string, data []byte) {
	info := transport.MessageInfo{From: e.Rank, Tag: m.Tag, Size: len(data), Type: typeName}
	if p := e.Posted(&info, m.Context); p != nil {
		copy(p.data, data)
		p.Received(&info)
		r.Finish(transport.MessageInfo{}, nil)
		return
	}
	if len(data) <= match.EagerMax && e.own.Use(len(data)) {
		t := e.tagged.New(len(data))
		t.MessageInfo, t.Context = info, m.Context
		copy(t.Data, data)
		e.queue(t)
		r.Finish(transport.MessageInfo{}, nil)
		return
	}
	s := e.newMessage(ctx, r, e.Rank, typeName, data)
	s.pattern.Match = m
	s.enter(announced)
	s.tagged = &match.Tagged{MessageInfo: info, Context: m.Context, Data: data, Rendezvous: true, Done: s.pulled}
	e.queue(s.tagged)
}
