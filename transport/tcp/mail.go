package tcp

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
	mail     bool
	on       *link // whose end concerns it; nil if it is on no link, or on all
	seeks    bool  // it waits for a letter,
	search   mailbox.Search
	connects bool // for the link to come up,
	begun    bool // or for bytes that are on their way: there is no way back
}

// Send implements [transport.Messenger].
func (e *Endpoint) Send(ctx context.Context, to int, stamp transport.Match, kind string, data []byte) error {
	e.lock()
	defer e.mu.Unlock()
	if err := e.mail.Blocked(ctx, to); err != nil {
		return err
	}
	switch {
	case len(kind) > callMax:
		return fmt.Errorf("tcp: the type's text has %d bytes, at most %d are allowed", len(kind), callMax)
	case to == e.cfg.Rank:
		return e.mail.Post(ctx, stamp, kind, data)
	}
	l := e.dialled(to)
	if err := l.connected(ctx); err != nil {
		return err
	}
	if len(data) <= mailbox.ShortMost && l.account.Charge(len(data)) {
		l.dispatch(header{kind: post, body: len(data), context: stamp.Context, total: len(data)}, stamp.Tag, kind, data)
		return nil
	}
	return l.lend(ctx, stamp, kind, data)
}

// Recv implements [transport.Messenger]. When ctx ends while a long letter is on
// its way from its sender's memory, the endpoint's part in the job ends.
func (e *Endpoint) Recv(ctx context.Context, from int, stamp transport.Match, kind string, into []byte) (transport.MessageInfo, error) {
	e.lock()
	defer e.mu.Unlock()
	m, err := e.mail.Take(ctx, mailbox.Search{From: from, Stamp: stamp}, kind, into)
	if m == nil {
		return transport.MessageInfo{}, err
	}
	return m.MessageInfo, err
}

// Probe implements [transport.Messenger].
func (e *Endpoint) Probe(ctx context.Context, from int, stamp transport.Match, wait bool) (transport.MessageInfo, bool, error) {
	e.lock()
	defer e.mu.Unlock()
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

// Glance implements [mailbox.Keeper]. Who waits reads anyhow.
func (e keeper) Glance(from int, wait bool) {
	if from >= 0 && from != e.cfg.Rank {
		e.dialled(from)
	}
	if wait {
		return
	}
	e.expect(from, 1)
	e.settle()
	for i, l := range e.links {
		if l != nil && (from == transport.Any || from == i) {
			l.receive()
		}
	}
	e.expect(from, -1)
	e.settle()
}

// Deserted implements [mailbox.Keeper]. So that it comes to light when all have
// left, there is always a link with a rank that has not.
func (e keeper) Deserted(from int) error {
	if from != transport.Any {
		if l := e.links[from]; l != nil {
			return l.err
		}
		return nil
	}
	n := e.cfg.Size
	next, linked := -1, false
	for i := 1; i < n; i++ {
		rank := (e.cfg.Rank + i) % n
		l := e.links[rank]
		switch {
		case l == nil || l.err == nil && l.phase == idle:
			if next < 0 {
				next = rank
			}
		case l.err == nil:
			linked = true
		case !errors.Is(l.err, transport.ErrLeft):
			return l.err
		}
	}
	switch {
	case linked || n == 1:
		return nil
	case next >= 0:
		e.dialled(next)
		return nil
	}
	return &transport.PeerError{Peer: (e.cfg.Rank + 1) % n, Err: transport.ErrLeft, Reason: "so have all others"}
}

// Seek implements [mailbox.Keeper].
func (e keeper) Seek(ctx context.Context, s mailbox.Search) error {
	job := errand{seeks: true, search: s}
	if s.From >= 0 {
		job.on = e.links[s.From]
	}
	e.expect(s.From, 1)
	defer e.expect(s.From, -1)
	return e.run(ctx, job)
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
	o := e.begin(ctx, transport.Step{})
	o.errand = errand{mail: true}
	defer e.leave(o)
	m.Done = o.finish
	e.await(o)
	return o.err
}

// run does an errand: it waits until something has changed, or fails.
func (e *Endpoint) run(ctx context.Context, job errand) error {
	o := e.begin(ctx, transport.Step{})
	o.errand = job
	o.mail = true
	defer e.leave(o)
	e.settle()
	if !o.over {
		e.await(o)
	}
	return o.err
}

// expect counts who waits for letters from a rank, or for word of a letter to
// it. What its link has held back is looked at again.
func (e *Endpoint) expect(from, n int) {
	switch {
	case from == e.cfg.Rank:
	case from >= 0:
		l := e.links[from]
		l.waits += n
		if n > 0 {
			e.lookAgain(l)
		}
	default:
		e.seekers += n
		for _, l := range e.links {
			if n > 0 && l != nil && l.blocked {
				e.lookAgain(l)
			}
		}
		if e.asleep && n > 0 {
			e.nudge()
		}
	}
}

// awaits reports whether somebody waits for letters from the peer, or for word
// of a letter to it.
func (l *link) awaits() bool { return l.waits > 0 || l.e.seekers > 0 }

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
