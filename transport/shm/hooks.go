package shm

import (
	"fmt"
	"slices"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
	"github.com/chorale-go/chorale/transport/internal/progress"
)

// hooks is the endpoint as its engine sees it.
type hooks Endpoint

var _ progress.Transport = (*hooks)(nil)

func (h *hooks) Progress(o *progress.Op) { (*Endpoint)(h).progress(o) }
func (h *hooks) Interrupt()              { h.state.wake() }
func (h *hooks) BeforeUnlock()           { (*Endpoint)(h).wakePeers() }

// Advance implements [progress.Transport].
func (h *hooks) Advance() bool {
	h.polls.all, h.polls.progressed = false, false
	(*Endpoint)(h).look()
	(*Endpoint)(h).advance()
	return h.polls.progressed
}

// BeforeWait wakes the owner, whose status word says what it sleeps for.
func (h *hooks) BeforeWait(o *progress.Op) {
	if !o.Over() {
		h.engine.Interrupt()
	}
}

func (h *hooks) Unblock(peer int) {
	h.links[peer].in.headUnexpected = false
	h.polls.progressed = true
}

func (h *hooks) Terminate(error) {
	e := (*Endpoint)(h)
	e.writeTermination()
	for i := range e.links {
		l := &e.links[i]
		l.in.queue.CancelAll()
		l.in.partials = nil
		if i != e.cfg.Rank {
			l.state.tell()
		}
	}
	e.polls.progressed = true
}

func (h *hooks) OpDone(o *progress.Op) {
	e := (*Endpoint)(h)
	if o.Pending() > 0 {
		for i := range e.links {
			e.links[i].in.cancel(&o.Step)
		}
		e.out.cancel(o)
	}
	if len(e.engine.Ops()) == 0 && !e.engine.Started() {
		e.polls.clear()
	}
	if e.out.promoter.due != nil {
		e.out.promoter.move(e)
	}
	if e.polls.unflushed && len(e.engine.Ops()) == 0 && !e.engine.Failed() && e.needsFlusher() {
		e.engine.StartFlusher()
	}
}

func (h *hooks) Poll(from int, waits bool) {
	e := (*Endpoint)(h)
	e.look()
	if waits && from >= 0 && !h.links[from].hasGone() {
		return // the owner polls
	}
	if from >= 0 && h.links[from].tagged.Waiters > 0 {
		h.links[from].checkPeer()
		return
	}
	h.AddWaiters(from, 1)
	for i := range h.links {
		if i != h.cfg.Rank && (from == transport.Any || from == i) {
			h.links[i].checkPeer()
		}
	}
	h.AddWaiters(from, -1)
	if !waits && e.polls.unflushed {
		e.flushTaggedFrames()
	}
}

func (h *hooks) Settle() {}

func (h *hooks) PeerError(from int, context uint32) error {
	if from != transport.Any {
		return h.links[from].err
	}
	return h.engine.AllGone(context, func(peer int) error { return h.links[peer].err })
}

// AddWaiters adds n to the operations that wait, and lets what the links hold back be
// polled again.
func (h *hooks) AddWaiters(from, n int) {
	h.polls.progressed = true // an owner that is about to sleep polls again
	switch {
	case from == h.cfg.Rank || h.engine.Closed():
	case from >= 0:
		l := &h.links[from]
		l.tagged.Waiters += n
		l.in.headUnexpected = false
		h.polls.add(l)
	default:
		h.polls.anySource += n
		for i := range h.links {
			h.links[i].in.headUnexpected = false
		}
	}
}

func (h *hooks) ReturnCredits(peer, size int) {
	l := &h.links[peer]
	l.tagged.held -= size + transport.MessageCost
	l.returnCredits(size)
}

// returnCredits returns the credits of an eager message that was received.
func (l *link) returnCredits(size int) {
	if due := l.tagged.Credits.Consume(size); due > 0 {
		l.control(controlFrame{kind: creditFrame, value: due})
	}
}

// typeMax is how long the text of a type may be, in bytes: a staging buffer takes it.
const typeMax = stagingLenMin / 2

// eagerMax is how long an eager message and the text of its type may be together.
func (e *Endpoint) eagerMax() int { return min(match.EagerMax, e.seg.stagingLen) }

func (h *hooks) SendEager(to int, m transport.Match, typeName string, data []byte) (bool, error) {
	if len(typeName) > typeMax {
		return false, fmt.Errorf("shm: the type's text has %d bytes, at most %d are allowed", len(typeName), typeMax)
	}
	l := &h.links[to]
	eager := len(data)+len(typeName) <= (*Endpoint)(h).eagerMax()
	check := l.checkTermination
	if eager {
		check = l.checkPeer // credits may have come; a long message is announced before others are read
	}
	if h.engine.Guard(check); h.engine.Failed() {
		return false, h.engine.Err()
	}
	if l.err != nil {
		return false, l.err
	}
	if !eager || !l.tagged.Credits.Use(len(data)) {
		return false, nil
	}
	f := taggedFrame{kind: eagerFrame, match: m, typeName: typeName}
	switch {
	case len(l.tagged.frames) == 0 && l.writeTagged(&f, data):
		return true, nil
	case l.tagged.unsent > 0: // copies wait already: the peer is not receiving
		f.data = slices.Clone(data)
		l.tagged.unsent += len(data) + transport.MessageCost
		l.tagged.frames = append(l.tagged.frames, f)
		(*Endpoint)(h).startFlusher()
		return true, nil
	}
	return false, progress.ErrNoRoom
}

func (h *hooks) SendWhenRoom(m *progress.Message) {
	to, match, typeName := m.Header()
	l := &h.links[to]
	l.tagged.frames = append(l.tagged.frames, taggedFrame{kind: eagerFrame, match: match, typeName: typeName, data: m.Data(), message: m})
	h.polls.unflushed = true
}

func (h *hooks) DropUnwritten(m *progress.Message) {
	to, _, _ := m.Header()
	l := &h.links[to]
	if i := slices.IndexFunc(l.tagged.frames, func(f taggedFrame) bool { return f.message == m }); i >= 0 {
		l.tagged.frames = slices.Delete(l.tagged.frames, i, i+1)
		l.tagged.Credits.Refund(len(m.Data()))
	}
}

func (h *hooks) Wire(peer int) (*progress.TaggedPeer, progress.Wire) {
	l := &h.links[peer]
	return &l.tagged.TaggedPeer, l
}

func (h *hooks) SendCTS(peer int, number uint32) {
	h.links[peer].control(controlFrame{kind: ctsFrame, number: number})
}
