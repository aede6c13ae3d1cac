//go:build mpi

package mpi

import (
	"fmt"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
	"github.com/chorale-go/chorale/transport/internal/progress"
)

// hooks is the endpoint as its engine sees it.
type hooks Endpoint

var _ progress.Transport = (*hooks)(nil)

func (h *hooks) Progress(o *progress.Op) { (*Endpoint)(h).progress(o) }
func (h *hooks) Advance() bool           { return (*Endpoint)(h).poll(1) == nil && h.progressed }
func (h *hooks) Interrupt()              {} // the owner sleeps for napMax at most
func (h *hooks) BeforeWait(*progress.Op) { (*Endpoint)(h).settle() }
func (h *hooks) BeforeUnlock()           {}
func (h *hooks) Unblock(peer int)        { (*Endpoint)(h).recheck(h.links[peer]) }

// Terminate leaves to MPI what the peers have asked for: they wait for it.
func (h *hooks) Terminate(why error) {
	e := (*Endpoint)(h)
	e.pulls.drop(func(*pull) bool { return true })
	for _, l := range e.links {
		if l != nil {
			l.in.queue.CancelAll()
			l.disown(func(*progress.Op) bool { return true })
		}
	}
	if e.noticed {
		e.noticed = false // nobody is told that the frames are sent which are dropped
		if !e.revokeNotices(why) {
			e.noticed = true
			return
		}
	}
	e.notify(e.engine.Notice())
	if len(e.backlog) > 0 && !e.engine.Closed() {
		e.engine.Go(e.flushNotices)
	}
}

// OpDone returns when MPI has let go of the operation's memory.
func (h *hooks) OpDone(o *progress.Op) {
	e := (*Endpoint)(h)
	if o.Pending() > 0 {
		e.pulls.drop(func(p *pull) bool { return p.recv != nil && p.recv.Step == &o.Step })
		for _, l := range e.links {
			if l != nil {
				l.in.queue.Cancel(&o.Step)
				l.disown(func(other *progress.Op) bool { return other == o })
			}
		}
	}
	e.awaitTransfers()
}

// Poll leaves it to the operation that waits next, if there is one.
func (h *hooks) Poll(_ int, waits bool) {
	if !waits {
		(*Endpoint)(h).pollAll()
	}
}

func (h *hooks) Settle() { (*Endpoint)(h).settle() }

// pollsPerSend is how many frames a send takes at most before it is sent.
const pollsPerSend = 4

func (h *hooks) SendEager(to int, m transport.Match, typeName string, data []byte) (bool, error) {
	e := (*Endpoint)(h)
	if len(typeName) > callMax {
		return false, fmt.Errorf("mpi: the type's text has %d bytes, at most %d are allowed", len(typeName), callMax)
	}
	e.engine.Guard(func() { e.pollOnce(pollsPerSend) }) // a rank that only sends must learn that the peer has gone
	l := e.link(to)
	if err := e.engine.Err(); err != nil {
		return false, err
	}
	if err := l.gone(); err != nil {
		return false, err
	}
	if len(data) > match.EagerMax || !l.tagged.Credits.Use(len(data)) {
		return false, nil
	}
	l.detach(header{kind: eagerFrame, context: m.Context, total: len(data), offset: m.Tag}, typeName, data)
	return true, nil
}

func (h *hooks) SendWhenRoom(*progress.Message)  {} // there is always room
func (h *hooks) DropUnwritten(*progress.Message) {}

func (h *hooks) Wire(peer int) (*progress.TaggedPeer, progress.Wire) {
	l := h.links[peer]
	return &l.tagged, l
}

func (h *hooks) PeerError(from int, context uint32) error {
	gone := func(peer int) error {
		if l := h.links[peer]; l != nil {
			return l.err
		}
		return nil
	}
	if from == transport.Any {
		return h.engine.AllGone(context, gone)
	}
	return gone(from)
}

func (h *hooks) AddWaiters(int, int) {} // all that comes is taken

func (h *hooks) ReturnCredits(peer, size int) {
	l := h.links[peer]
	if due := l.tagged.Credits.Consume(size); due > 0 {
		l.control(header{kind: taggedCreditFrame, total: due})
	}
}

func (h *hooks) SendCTS(peer int, number uint32) {
	e := (*Endpoint)(h)
	m := e.engine.Tagged().Requested(peer, number)
	e.pulls.begin(&pull{link: e.link(peer), kind: ctsFrame, number: number, tagged: m})
}

// Revoke implements [progress.Transport]. It is not called: see [progress.Engine.FailTogether].
func (h *hooks) Revoke(uint32, *transport.PeerError) {}
