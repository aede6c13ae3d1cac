package transporttest

import (
	"context"
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
}

func (e *naive) Send(ctx context.Context, to int, match transport.Match, kind string, data []byte) error {
	defer e.lock(ctx)()
	if to != e.rank && !e.isPeer(to) {
		return &transport.RankError{Peer: to, Rank: e.rank, Size: e.Size()}
	}
	peer := e.job.ends[to]
	m := &naiveTagged{
		MessageInfo: transport.MessageInfo{From: e.rank, Tag: match.Tag, Size: len(data), Type: kind},
		context:     match.Context,
		data:        data,
	}
	if err := e.cannotSend(ctx, to); err != nil {
		return err
	}
	if len(data) <= naiveShort && peer.copied[e.rank]+len(data)+transport.MessageCost <= transport.TaggedMax {
		m.data, m.copied = slices.Clone(data), true
		peer.copied[e.rank] += len(data) + transport.MessageCost
	}
	peer.tagged = append(peer.tagged, m)
	e.job.changed.Broadcast()
	stall := e.taggedStall(match, to)
	for !m.copied && !m.received {
		if err := e.cannotSend(ctx, to); err != nil {
			peer.dequeue(m)
			return err
		}
		e.wait(stall)
	}
	return nil
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
func (e *naive) cannotSend(ctx context.Context, to int) error {
	if e.ended != nil {
		return e.ended
	}
	if err := e.gone(to); err != nil {
		return err
	}
	return transport.Cause(ctx)
}

func (e *naive) Recv(ctx context.Context, from int, match transport.Match, kind string, into []byte) (transport.MessageInfo, error) {
	info, _, err := e.recv(ctx, from, match, true, kind, into)
	return info, err
}

func (e *naive) TryRecv(ctx context.Context, from int, match transport.Match, kind string, into []byte) (transport.MessageInfo, bool, error) {
	return e.recv(ctx, from, match, false, kind, into)
}

func (e *naive) recv(ctx context.Context, from int, match transport.Match, wait bool, kind string, into []byte) (transport.MessageInfo, bool, error) {
	defer e.lock(ctx)()
	m, err := e.find(ctx, from, match, wait)
	switch {
	case m == nil:
		return transport.MessageInfo{}, false, err
	case m.Type != kind:
		return m.MessageInfo, true, &transport.TypeError{Peer: m.From, Got: m.Type, Want: kind}
	case m.Size > len(into):
		return m.MessageInfo, true, &transport.SizeError{Peer: m.From, Got: m.Size, Want: len(into)}
	}
	copy(into, m.data)
	m.received = true
	e.dequeue(m)
	e.job.changed.Broadcast()
	return m.MessageInfo, true, nil
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
		if e.ended != nil {
			return nil, e.ended
		}
		for _, m := range e.tagged {
			if m.context == match.Context &&
				(from == transport.Any || m.From == from) &&
				(match.Tag == transport.Any || m.Tag == match.Tag) {
				return m, nil
			}
		}
		if err := e.noSender(from); err != nil {
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
// comes if one is lost or has aborted, or all others have left.
func (e *naive) noSender(from int) error {
	if from != transport.Any {
		return e.gone(from)
	}
	left := 0
	for rank, peer := range e.job.ends {
		err := e.gone(rank)
		switch _, lost := e.lost[rank]; {
		case rank == e.rank:
		case lost || err != nil && peer.ended != transport.ErrClosed:
			return err
		case err != nil:
			left++
		}
	}
	if left > 0 && left == e.Size()-1 {
		next := (e.rank + 1) % e.Size()
		return &transport.PeerError{Peer: next, Err: transport.ErrAllLeft}
	}
	return nil
}
