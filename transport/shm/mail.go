package shm

import (
	"context"
	"errors"
	"fmt"

	"github.com/chorale-go/chorale/transport"
)

var _ transport.Mailer = (*Endpoint)(nil)

// An errand is what an operation waits for that is no Exchange: a letter, or
// how far a letter of its own has come.
type errand struct {
	mail    bool
	on      *link // whose end concerns it; nil if it is on no link, or on all
	seeks   bool  // it waits for a letter,
	search  search
	begun   bool // or for bytes that are on their way: there is no way back;
	carries bool // or until all that was posted is written
}

// Post implements [transport.Mailer].
func (e *Endpoint) Post(ctx context.Context, to int, stamp transport.Stamp, kind string, data []byte) error {
	e.lock()
	defer e.unlock()
	switch {
	case to < 0 || to >= e.cfg.Size:
		return &transport.RankError{Peer: to, Rank: e.cfg.Rank, Size: e.cfg.Size}
	case len(kind) > typeMost:
		return fmt.Errorf("shm: the type's text has %d bytes, at most %d are allowed", len(kind), typeMost)
	case e.err != nil:
		return e.ended()
	case ctx.Err() != nil:
		return transport.Cause(ctx)
	case to == e.cfg.Rank:
		return e.postToSelf(ctx, stamp, kind, data)
	}
	l := &e.links[to]
	if l.listen(); e.err != nil {
		return e.ended()
	}
	if l.err != nil {
		return l.err
	}
	cost := len(data) + letterCost
	if len(data)+len(kind) <= e.shortLetter() && l.untaken+cost <= unreadMost {
		l.untaken += cost
		l.dispatch(envelope{as: post, stamp: stamp, kind: kind, total: len(data)}, data)
		return nil
	}
	return l.lend(ctx, stamp, kind, data)
}

// postToSelf puts a letter into this rank's own mailbox.
func (e *Endpoint) postToSelf(ctx context.Context, stamp transport.Stamp, kind string, data []byte) error {
	envelope := transport.Envelope{From: e.cfg.Rank, Tag: stamp.Tag, Size: len(data), Type: kind}
	cost := len(data) + letterCost
	if len(data) <= letterMost && e.mail.own+cost <= unreadMost {
		e.mail.own += cost
		m := e.mail.blank(len(data))
		m.Envelope, m.context = envelope, stamp.Context
		copy(m.data, data)
		e.deliver(m)
		return nil
	}
	m := &letter{Envelope: envelope, context: stamp.Context, data: data, lent: true}
	m.op = e.begin(ctx)
	m.op.errand = errand{mail: true}
	defer e.leave(m.op)
	e.deliver(m)
	e.await(m.op)
	if m.op.err != nil {
		e.mail.remove(m)
	}
	return m.op.err
}

// Take implements [transport.Mailer]. When ctx ends while a long letter is on
// its way from its sender's memory, the endpoint's part in the job ends.
func (e *Endpoint) Take(ctx context.Context, from int, stamp transport.Stamp, kind string, into []byte) (transport.Envelope, error) {
	e.lock()
	defer e.unlock()
	for {
		m, err := e.find(ctx, search{from, stamp}, true)
		switch {
		case err != nil:
			return transport.Envelope{}, err
		case m.Type != kind:
			return m.Envelope, &transport.TypeError{Peer: m.From, Got: m.Type, Want: kind}
		case m.Size > len(into):
			return m.Envelope, &transport.SizeError{Peer: m.From, Got: m.Size, Want: len(into)}
		}
		if m.lent && ctx.Err() != nil {
			return transport.Envelope{}, transport.Cause(ctx)
		}
		e.mail.remove(m)
		switch {
		case !m.lent:
			copy(into, m.data)
			envelope := m.Envelope
			e.spent(m)
			return envelope, nil
		case m.link == nil:
			copy(into, m.data)
			m.op.finish(nil)
			return m.Envelope, nil
		}
		if err := m.fetch(ctx, into[:m.Size]); err != errWithdrawn {
			return m.Envelope, err
		}
	}
}

// Peek implements [transport.Mailer].
func (e *Endpoint) Peek(ctx context.Context, from int, stamp transport.Stamp, wait bool) (transport.Envelope, bool, error) {
	e.lock()
	defer e.unlock()
	m, err := e.find(ctx, search{from, stamp}, wait)
	if m == nil {
		return transport.Envelope{}, false, err
	}
	return m.Envelope, true, nil
}

// find looks for a letter, and waits for one if it is to. It leaves the letter
// in the mailbox. Without an error there is none only where it does not wait.
func (e *Endpoint) find(ctx context.Context, s search, wait bool) (*letter, error) {
	if s.from != transport.Any && (s.from < 0 || s.from >= e.cfg.Size) {
		return nil, &transport.RankError{Peer: s.from, Rank: e.cfg.Rank, Size: e.cfg.Size}
	}
	var l *link
	if s.from >= 0 && s.from != e.cfg.Rank && !e.closed {
		l = &e.links[s.from]
	}
	for looked := false; ; {
		if e.err != nil {
			return nil, e.ended()
		}
		if m := e.mail.first(s); m != nil {
			return m, nil
		}
		if !looked {
			e.glance(s.from)
			looked = true
			continue
		}
		if err := e.deserted(s.from); err != nil {
			return nil, err
		}
		switch {
		case !wait:
			return nil, nil
		case ctx.Err() != nil:
			return nil, transport.Cause(ctx)
		}
		if err := e.run(ctx, errand{on: l, seeks: true, search: s}); err != nil {
			return nil, err
		}
		looked = false
	}
}

// ended returns why this endpoint's part has ended.
func (e *Endpoint) ended() error {
	if e.closed {
		return transport.ErrClosed
	}
	return e.err
}

// run does an errand: it waits until something has changed, or fails.
func (e *Endpoint) run(ctx context.Context, job errand) error {
	if e.err != nil {
		return e.ended()
	}
	o := e.begin(ctx)
	o.errand = job
	o.mail = true
	defer e.leave(o)
	if o.seeks {
		e.expect(o.search.from, 1)
		defer e.expect(o.search.from, -1)
	}
	e.await(o)
	return o.err
}

// expect counts who waits for letters from a rank, or for word of a letter to
// it. What its link has held back is looked at again.
func (e *Endpoint) expect(from, n int) {
	switch {
	case from == e.cfg.Rank || e.closed:
	case from >= 0:
		l := &e.links[from]
		l.waits += n
		l.blocked = false
		e.watchOver(l)
	default:
		e.seekers += n
		for i := range e.links {
			e.links[i].blocked = false
		}
	}
}

// awaits reports whether somebody waits for letters from the peer, or for word
// of a letter to it.
func (l *link) awaits() bool { return l.waits > 0 || l.e.seekers > 0 }

// glance takes what has come from a rank, or from any, without waiting.
func (e *Endpoint) glance(from int) {
	e.expect(from, 1)
	for i := range e.links {
		if i != e.cfg.Rank && (from == transport.Any || from == i) {
			e.links[i].listen()
		}
	}
	e.expect(from, -1)
}

// listen takes what the peer has sent, up to a message that nobody expects, and
// looks whether the peer has gone.
func (l *link) listen() {
	l.seeParting()
	l.hear()
}

// deserted returns why no letter comes any more from a rank. From any, that is
// when one is lost or gave up, or all have left.
func (e *Endpoint) deserted(from int) error {
	if from != transport.Any {
		return e.links[from].err
	}
	stay := e.cfg.Size == 1
	for i := range e.links {
		switch l := &e.links[i]; {
		case i == e.cfg.Rank:
		case l.err == nil:
			stay = true
		case !errors.Is(l.err, transport.ErrLeft):
			return l.err
		}
	}
	if stay {
		return nil
	}
	return &transport.PeerError{Peer: (e.cfg.Rank + 1) % e.cfg.Size, Err: transport.ErrLeft, Reason: "so have all others"}
}

// expire ends what uses the context with this Done channel. An Exchange takes
// the endpoint with it; so does a letter that is on its way.
func (e *Endpoint) expire(ctx context.Context, ended <-chan struct{}) {
	for _, o := range e.ops {
		switch {
		case o.over || o.ended != ended:
		case o.mail && !o.begun:
			o.finish(transport.Cause(ctx))
		default:
			e.fail(transport.Cause(ctx))
			return
		}
	}
}
