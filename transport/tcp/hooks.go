package tcp

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
	"github.com/chorale-go/chorale/transport/internal/progress"
)

// hooks is the endpoint as its engine sees it.
type hooks Endpoint

var _ progress.Transport = (*hooks)(nil)

func (h *hooks) Progress(o *progress.Op) { (*Endpoint)(h).progress(o) }
func (h *hooks) Advance() bool           { return (*Endpoint)(h).advance() }
func (h *hooks) Interrupt()              { h.polls.poller.wake() }
func (h *hooks) BeforeUnlock()           {}

func (h *hooks) BeforeWait(o *progress.Op) {
	if (*Endpoint)(h).settle(); !o.Over() {
		h.bursts.waits++
		h.bursts.latest = time.Time{}
		(*Endpoint)(h).endBursts()
	}
}

func (h *hooks) Unblock(peer int) { (*Endpoint)(h).recheck(h.links[peer]) }

func (h *hooks) Terminate(error) {
	e := (*Endpoint)(h)
	for _, l := range e.links {
		if l != nil {
			l.terminate()
		}
	}
	if e.queued.notices > 0 && !e.engine.Closed() {
		e.engine.Go(e.flushNotices)
	}
}

func (h *hooks) OpDone(o *progress.Op) {
	if o.Pending() == 0 {
		return
	}
	for _, l := range h.links {
		if l != nil {
			l.in.queue.Cancel(&o.Step)
			l.out.queue = slices.DeleteFunc(l.out.queue, func(m outgoing) bool { return m.op == o })
		}
	}
}

// Poll leaves the reading to the operation that waits next, if there is one.
func (h *hooks) Poll(from int, waits bool) {
	e := (*Endpoint)(h)
	if from >= 0 && from != e.cfg.Rank {
		e.dialed(from)
	}
	if waits {
		return
	}
	e.endBursts()
	h.AddWaiters(from, 1)
	defer h.AddWaiters(from, -1)
	e.settle()
	for i, l := range e.links {
		if l != nil && (from == transport.Any || from == i) {
			if l.receive(); l.out.pending() {
				l.flush()
			}
		}
	}
	e.settle()
}

func (h *hooks) Settle() { (*Endpoint)(h).settle() }

// PeerError keeps a link with a rank that has not left, so that the endpoint learns
// when all have.
func (h *hooks) PeerError(from int, context uint32) error {
	if from != transport.Any {
		if l := h.links[from]; l != nil {
			return l.err
		}
		return nil
	}
	next, linked := -1, false
	err := h.engine.AllGone(context, func(peer int) error {
		switch l := h.links[peer]; {
		case l == nil || l.err == nil && l.phase == idle:
			if next < 0 {
				next = peer
			}
		case l.err == nil:
			linked = true
		default:
			return l.err
		}
		return nil
	})
	if err == nil && !linked && next >= 0 {
		(*Endpoint)(h).dialed(next)
	}
	return err
}

// AddWaiters adds n to the operations that wait, and has the links polled again that
// hold something back.
func (h *hooks) AddWaiters(from, n int) {
	e := (*Endpoint)(h)
	switch {
	case from == e.cfg.Rank:
	case from >= 0:
		l := e.dialed(from)
		l.tagged.Waiters += n
		if n > 0 {
			e.recheck(l)
		}
	default:
		e.polls.anySource += n
		if n < 0 {
			return
		}
		for _, l := range e.links {
			if l != nil && l.in.headUnexpected {
				e.recheck(l)
			}
		}
		e.engine.Interrupt()
	}
}

func (h *hooks) ReturnCredits(peer, size int) {
	l := h.links[peer]
	if due := l.tagged.Credits.Consume(size); due > 0 {
		l.controlSoon(header{kind: creditFrame, total: due})
	}
}

func (h *hooks) SendCTS(peer int, number uint32) {
	l, m := h.links[peer], h.engine.Tagged().Requested(peer, number)
	l.tagged.asked = append(l.tagged.asked, asked{number: number, context: m.Context, rest: m.Size})
	l.controlSoon(header{kind: ctsFrame, sequence: number})
}

func (h *hooks) SendEager(to int, m transport.Match, typeName string, data []byte) (bool, error) {
	e := (*Endpoint)(h)
	if len(typeName) > callMax {
		return false, fmt.Errorf("tcp: the type's text has %d bytes, at most %d are allowed", len(typeName), callMax)
	}
	if !e.bursts.starting {
		e.endBursts()
	}
	l := e.dialed(to)
	if l.phase != up && l.err == nil {
		return false, progress.ErrNoLink
	}
	looked := !l.in.fresh && l.listens()
	if looked { // a rank that only sends would never learn otherwise that the peer has gone
		l.look()
	}
	l.in.fresh = false
	if err := l.mayWrite(); err != nil || len(data) > match.EagerMax {
		return false, err
	}
	if !l.tagged.Credits.Use(len(data)) {
		if looked {
			return false, nil
		}
		l.look() // the peer may have returned some
		if err := l.mayWrite(); err != nil || !l.tagged.Credits.Use(len(data)) {
			return false, err
		}
	}
	l.enqueueTagged(header{kind: eagerFrame, body: len(data), context: m.Context, total: len(data)}, m.Tag, typeName, data)
	return true, nil
}

// look takes what the peer has sent, for an operation that waits for nothing.
func (l *link) look() {
	l.e.engine.Guard(func() { l.poll(); l.e.settle() })
}

// mayWrite returns why nothing can be written to the peer any more, or nil.
func (l *link) mayWrite() error { return cmp.Or(l.e.engine.Err(), l.err) }

func (h *hooks) SendWhenRoom(*progress.Message)  {} // there is always room
func (h *hooks) DropUnwritten(*progress.Message) {}

func (h *hooks) Wire(peer int) (*progress.TaggedPeer, progress.Wire) {
	l := h.links[peer]
	return &l.tagged.TaggedPeer, l
}
