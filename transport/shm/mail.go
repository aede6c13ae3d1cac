package shm

import (
	"context"
	"errors"
	"fmt"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/mailbox"
)

var _ transport.Messenger = (*Endpoint)(nil)

// An errand is what an operation waits for that is no Exchange: a letter, or
// how far a letter of its own has come.
type errand struct {
	mail    bool
	on      *link // whose end concerns it; nil if it is on no link, or on all
	seeks   bool  // it waits for a letter,
	search  mailbox.Search
	begun   bool // or for bytes that are on their way: there is no way back;
	carries bool // or until all that was posted is written
}

// Send implements [transport.Messenger].
func (e *Endpoint) Send(ctx context.Context, to int, stamp transport.Match, kind string, data []byte) error {
	e.lock()
	defer e.unlock()
	if err := e.mail.Blocked(ctx, to); err != nil {
		return err
	}
	switch {
	case len(kind) > typeMost:
		return fmt.Errorf("shm: the type's text has %d bytes, at most %d are allowed", len(kind), typeMost)
	case to == e.cfg.Rank:
		return e.mail.Post(ctx, stamp, kind, data)
	}
	l := &e.links[to]
	if l.listen(); e.err != nil {
		return e.err
	}
	if l.err != nil {
		return l.err
	}
	if len(data)+len(kind) <= e.shortLetter() && l.account.Charge(len(data)) {
		l.dispatch(envelope{as: post, stamp: stamp, kind: kind, total: len(data)}, data)
		return nil
	}
	return l.lend(ctx, stamp, kind, data)
}

// Recv implements [transport.Messenger]. When ctx ends while a long letter is on
// its way from its sender's memory, the endpoint's part in the job ends.
func (e *Endpoint) Recv(ctx context.Context, from int, stamp transport.Match, kind string, into []byte) (transport.MessageInfo, error) {
	e.lock()
	defer e.unlock()
	m, err := e.mail.Take(ctx, mailbox.Search{From: from, Stamp: stamp}, kind, into)
	if m == nil {
		return transport.MessageInfo{}, err
	}
	return m.MessageInfo, err
}

// Probe implements [transport.Messenger].
func (e *Endpoint) Probe(ctx context.Context, from int, stamp transport.Match, wait bool) (transport.MessageInfo, bool, error) {
	e.lock()
	defer e.unlock()
	m, err := e.mail.Find(ctx, mailbox.Search{From: from, Stamp: stamp}, wait)
	if m == nil {
		return transport.MessageInfo{}, false, err
	}
	return m.MessageInfo, true, nil
}

// A keeper is the endpoint as its mailbox sees it.
type keeper struct{ *Endpoint }

// Ended implements [mailbox.Keeper].
func (e keeper) Ended() error {
	if e.closed {
		return transport.ErrClosed
	}
	return e.err
}

// Glance implements [mailbox.Keeper].
func (e keeper) Glance(from int, _ bool) {
	e.expect(from, 1)
	for i := range e.links {
		if i != e.cfg.Rank && (from == transport.Any || from == i) {
			e.links[i].listen()
		}
	}
	e.expect(from, -1)
}

// Deserted implements [mailbox.Keeper].
func (e keeper) Deserted(from int) error {
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

// Seek implements [mailbox.Keeper].
func (e keeper) Seek(ctx context.Context, s mailbox.Search) error {
	o := e.begin(ctx)
	o.errand = errand{mail: true, seeks: true, search: s}
	if s.From >= 0 && s.From != e.cfg.Rank {
		o.on = &e.links[s.From]
	}
	defer e.leave(o)
	e.expect(s.From, 1)
	defer e.expect(s.From, -1)
	e.await(o)
	return o.err
}

// Found implements [mailbox.Keeper].
func (e keeper) Found(m *mailbox.Letter) {
	for _, o := range e.ops {
		if o.seeks && o.search.Finds(m) {
			o.finish(nil)
		}
	}
}

// Hold implements [mailbox.Keeper].
func (e keeper) Hold(ctx context.Context, m *mailbox.Letter) error {
	o := e.begin(ctx)
	o.errand = errand{mail: true}
	defer e.leave(o)
	m.Done = o.finish
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

// listen takes what the peer has sent, up to a message that nobody expects, and
// looks whether the peer has gone.
func (l *link) listen() {
	l.seeParting()
	l.hear()
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
