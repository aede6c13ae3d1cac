package shm

import (
	"github.com/chorale-go/chorale/transport"
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
			l.state.wakeFrom(l.state.status.Load())
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
	if len(e.engine.Ops()) == 0 {
		e.polls.clear()
	}
	if e.out.promoter.due != nil {
		e.out.promoter.move(e)
	}
}

func (h *hooks) Poll(from int, _ bool) {
	h.AddWaiters(from, 1)
	defer h.AddWaiters(from, -1)
	for i := range h.links {
		if i != h.cfg.Rank && (from == transport.Any || from == i) {
			h.links[i].checkPeer()
		}
	}
}

func (h *hooks) PeerError(from int) error {
	if from != transport.Any {
		return h.links[from].err
	}
	return h.engine.AllGone(func(peer int) error { return h.links[peer].err })
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
	if due := l.tagged.Credits.Consume(size); due > 0 {
		l.control(controlFrame{kind: creditFrame, credits: due})
	}
}

func (h *hooks) SendCTS(peer int, number uint32) {
	h.links[peer].control(controlFrame{kind: ctsFrame, number: number})
}
