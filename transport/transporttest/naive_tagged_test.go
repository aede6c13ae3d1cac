package transporttest

import (
	"context"
	"errors"
	"slices"

	"github.com/chorale-go/chorale/transport"
)

const (
	naiveShort = 64 << 10 // bytes of the longest message that Send copies
)

// A naiveTagged is a tagged message.
type naiveTagged struct {
	transport.MessageInfo
	context  uint32
	data     []byte
	copied   bool // data is a copy, and the sender does not wait
	received bool
	request  *naiveRequest // of its sender
}

// A naiveRequest is a request in progress.
type naiveRequest struct {
	r       *transport.Request
	ctx     context.Context
	peer    int // the receiver, or the sender
	match   transport.Match
	kind    string
	data    []byte
	message *naiveTagged // that is sent; nil for a receive
}

func (e *naive) Send(ctx context.Context, to int, match transport.Match, kind string, data []byte) error {
	var r transport.Request
	e.StartSend(ctx, &r, to, match, kind, data)
	e.Wait(&r)
	return r.Err
}

func (e *naive) StartSend(ctx context.Context, r *transport.Request, to int, match transport.Match, kind string, data []byte) {
	defer e.lock(ctx)()
	if to != e.rank && !e.isPeer(to) {
		r.Finish(transport.MessageInfo{}, &transport.RankError{Peer: to, Rank: e.rank, Size: e.Size()})
		return
	}
	if err := e.cannotSend(ctx, to, match.Context); err != nil {
		r.Finish(transport.MessageInfo{}, err)
		return
	}
	peer := e.job.ends[to]
	m := &naiveTagged{
		MessageInfo: transport.MessageInfo{From: e.rank, Tag: match.Tag, Size: len(data), Type: kind},
		context:     match.Context,
		data:        data,
	}
	m.request = &naiveRequest{r: r, ctx: ctx, peer: to, match: match, message: m}
	r.State = m.request
	if len(data) <= naiveShort && peer.copied[e.rank]+len(data)+transport.MessageCost <= transport.TaggedMax {
		m.data, m.copied = slices.Clone(data), true
		peer.copied[e.rank] += len(data) + transport.MessageCost
		r.Finish(transport.MessageInfo{}, nil)
	}
	peer.tagged = append(peer.tagged, m)
	peer.deliver()
	e.job.changed.Broadcast()
}

func (e *naive) StartRecv(ctx context.Context, r *transport.Request, from int, match transport.Match, kind string, into []byte) {
	defer e.lock(ctx)()
	if from != transport.Any && from != e.rank && !e.isPeer(from) {
		r.Finish(transport.MessageInfo{}, &transport.RankError{Peer: from, Rank: e.rank, Size: e.Size()})
		return
	}
	if err := e.err(match.Context); err != nil {
		r.Finish(transport.MessageInfo{}, err)
		return
	}
	p := &naiveRequest{r: r, ctx: ctx, peer: from, match: match, kind: kind, data: into}
	r.State = p
	e.posted = append(e.posted, p)
	e.deliver()
	if !r.Done() && (e.noSender(from, match.Context) != nil || ctx.Err() != nil) {
		e.giveUp(p)
	}
}

// deliver gives queued messages to the receives that match, in order.
func (e *naive) deliver() {
	for i := 0; i < len(e.posted); {
		p := e.posted[i]
		m := e.first(p.peer, p.match)
		if m == nil {
			i++
			continue
		}
		e.posted = slices.Delete(e.posted, i, i+1)
		switch {
		case m.Type != p.kind:
			p.r.Finish(m.MessageInfo, &transport.TypeError{Peer: m.From, Got: m.Type, Want: p.kind})
		case m.Size > len(p.data):
			p.r.Finish(m.MessageInfo, &transport.SizeError{Peer: m.From, Got: m.Size, Want: len(p.data)})
		default:
			copy(p.data, m.data)
			m.received = true
			e.dequeue(m)
			p.r.Finish(m.MessageInfo, nil)
			if !m.copied {
				m.request.r.Finish(transport.MessageInfo{}, nil)
			}
		}
	}
	e.job.changed.Broadcast()
}

// first returns the first message that matches, or nil.
func (e *naive) first(from int, match transport.Match) *naiveTagged {
	for _, m := range e.tagged {
		if m.context == match.Context &&
			(from == transport.Any || m.From == from) &&
			(match.Tag == transport.Any || m.Tag == match.Tag) {
			return m
		}
	}
	return nil
}

// giveUp ends a request that will not be done otherwise, if there is a reason.
func (e *naive) giveUp(p *naiveRequest) {
	err := e.err(p.match.Context)
	switch {
	case err != nil || p.r.Done():
	case p.message != nil:
		err = e.cannotSend(p.ctx, p.peer, p.match.Context)
	default:
		if err = e.noSender(p.peer, p.match.Context); err == nil {
			err = transport.Cause(p.ctx)
		}
	}
	if err != nil && !p.r.Done() {
		e.end(p, err)
	}
}

// end ends a request with an error.
func (e *naive) end(p *naiveRequest, err error) {
	if p.message != nil {
		e.job.ends[p.peer].dequeue(p.message)
	} else {
		e.posted = slices.DeleteFunc(e.posted, func(other *naiveRequest) bool { return other == p })
	}
	p.r.Finish(transport.MessageInfo{}, err)
}

func (e *naive) Wait(r *transport.Request) {
	e.job.mu.Lock()
	if r.Done() {
		e.job.mu.Unlock()
		return
	}
	p := r.State.(*naiveRequest)
	e.job.mu.Unlock()
	defer e.lock(p.ctx)()
	stall := e.taggedStall(p.match, p.peer)
	for !r.Done() {
		if e.giveUp(p); !r.Done() {
			e.wait(stall)
		}
	}
}

func (e *naive) Progress() {}

func (e *naive) Cancel(r *transport.Request, err error) {
	e.job.mu.Lock()
	defer e.job.mu.Unlock()
	if !r.Done() {
		e.end(r.State.(*naiveRequest), err)
	}
}

// dequeue removes a message, which is queued.
func (e *naive) dequeue(m *naiveTagged) {
	i := slices.Index(e.tagged, m)
	e.tagged = slices.Delete(e.tagged, i, i+1)
	if m.copied {
		e.copied[m.From] -= m.Size + transport.MessageCost
	}
}

// cannotSend returns why a message cannot be sent to a rank, or nil.
func (e *naive) cannotSend(ctx context.Context, to int, context uint32) error {
	if err := e.err(context); err != nil {
		return err
	}
	if err := e.gone(to); err != nil {
		return err
	}
	return transport.Cause(ctx)
}

func (e *naive) Recv(ctx context.Context, from int, match transport.Match, kind string, into []byte) (transport.MessageInfo, error) {
	var r transport.Request
	e.StartRecv(ctx, &r, from, match, kind, into)
	e.Wait(&r)
	return r.Info, r.Err
}

func (e *naive) TryRecv(ctx context.Context, from int, match transport.Match, kind string, into []byte) (transport.MessageInfo, bool, error) {
	info, found, err := e.Probe(ctx, from, match, false)
	if !found {
		return info, false, err
	}
	info, err = e.Recv(ctx, info.From, transport.Match{Context: match.Context, Tag: info.Tag}, kind, into)
	return info, true, err
}

func (e *naive) Probe(ctx context.Context, from int, match transport.Match, wait bool) (transport.MessageInfo, bool, error) {
	defer e.lock(ctx)()
	m, err := e.find(ctx, from, match, wait)
	if m == nil {
		return transport.MessageInfo{}, false, err
	}
	return m.MessageInfo, true, nil
}

// find returns the first message that matches. Without one it returns an error, or,
// if it does not wait, nil.
func (e *naive) find(ctx context.Context, from int, match transport.Match, wait bool) (*naiveTagged, error) {
	if from != transport.Any && from != e.rank && !e.isPeer(from) {
		return nil, &transport.RankError{Peer: from, Rank: e.rank, Size: e.Size()}
	}
	stall := e.taggedStall(match, from)
	for {
		if err := e.err(match.Context); err != nil {
			return nil, err
		}
		if m := e.first(from, match); m != nil {
			return m, nil
		}
		if err := e.noSender(from, match.Context); err != nil {
			return nil, err
		}
		if !wait || ctx.Err() != nil {
			return nil, transport.Cause(ctx)
		}
		e.wait(stall)
	}
}

// taggedStall is the next wait, for a tagged message from or to a rank.
func (e *naive) taggedStall(match transport.Match, peer int) transport.Stall {
	e.waits++
	s := transport.Stall{Signature: transport.Signature{Context: match.Context}, Tag: match.Tag, Wait: e.waits}
	if peer != transport.Any {
		s.Peers = []int{peer}
	}
	return s
}

// noSender returns why no message comes from a rank, or nil. From any rank none
// comes if one of the communicator is lost or has aborted, or all others have left.
func (e *naive) noSender(from int, context uint32) error {
	if from != transport.Any {
		return e.gone(from)
	}
	left, others := 0, 0
	for _, rank := range e.membersOf(transport.Communicator(context)) {
		if rank == e.rank {
			continue
		}
		others++
		switch err := e.gone(rank); {
		case errors.Is(err, transport.ErrLeft):
			left++
		case err != nil:
			return err
		}
	}
	if left > 0 && left == others {
		next := (e.rank + 1) % e.Size()
		return &transport.PeerError{Peer: next, Err: transport.ErrAllLeft}
	}
	return nil
}
