package shm

import (
	"slices"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
	"github.com/chorale-go/chorale/transport/internal/progress"
)

// A rank that revokes a communicator publishes that, and tells the others of the
// communicator to look. From then on its callers may write to their memory again: what a
// peer reads there it drops (ordering.go, 6). What was sent goes on being taken, and is
// thrown away. A message of a step that has begun is abandoned in a frame, so that the
// receiver does not wait for the rest of it, and its place is not used again before.

// Revoke implements [progress.Transport].
func (h *hooks) Revoke(communicator uint32, why *transport.PeerError) {
	e := (*Endpoint)(h)
	e.publishRevocation(communicator, why)
	e.out.revoke(communicator)
	for i := range e.links {
		if i != e.cfg.Rank {
			e.links[i].revoke(communicator)
		}
	}
	e.polls.progressed = true
}

// publishRevocation publishes that this rank has revoked a communicator.
func (e *Endpoint) publishRevocation(communicator uint32, why *transport.PeerError) {
	var to [ranksMax / 64]uint64
	for i := range e.links {
		if e.engine.Told(communicator, i) {
			to[i/64] |= 1 << (i % 64)
		}
	}
	log := &e.state.revocations
	reason := log.say(progress.AppendRevocation(nil, why), &e.nextReason)
	log.publish(communicator, reason, to[:e.seg.rankWords()])
	for i := range e.links {
		if to[i/64]>>(i%64)&1 != 0 {
			e.links[i].state.tell()
		}
	}
}

// look looks at what the peers publish if one of them has told this rank to. It is called
// where no frame is being taken.
func (e *Endpoint) look() {
	if e.state != nil && e.toldMore() {
		e.lookAtPeers()
	}
}

// toldMore reports whether a peer has told this rank to look since it has done so last.
func (e *Endpoint) toldMore() bool { return e.state.told.Load() != e.polls.told }

//go:noinline
func (e *Endpoint) lookAtPeers() { e.engine.Guard(e.checkPeers) }

// hear takes the revocations that the peer has published since this rank last looked.
func (l *link) hear() {
	log := &l.state.revocations
	for count := log.count.Load(); l.heard < count; {
		communicator, reason, told, ok := log.at(l.heard, l.e.cfg.Rank, l.e.seg.rankWords())
		l.heard++
		if !ok {
			l.missRevocations()
			return
		}
		if !told {
			continue
		}
		text := log.reason(reason)
		if text == nil { // many others were published since
			text = progress.AppendRevocation(nil, l.revoked())
		}
		if l.e.engine.HearRevocation(communicator, text) != nil {
			l.protocolError()
			return
		}
	}
}

// missRevocations revokes every communicator to which the peer and this rank belong, because
// the peer has revoked more than it publishes since this rank last looked, maybe each of them.
// Otherwise an operation would wait for a peer that has none.
func (l *link) missRevocations() {
	l.heard = l.state.revocations.count.Load()
	l.e.engine.RevokeShared(l.peer, l.revoked())
}

// revoked is the error of a communicator that the peer has revoked, where its reason is not
// known.
func (l *link) revoked() *transport.PeerError {
	return &transport.PeerError{Peer: l.peer, Err: transport.ErrRevoked}
}

// explain takes what the peer has published, of which something has changed. It reports
// whether messages of a context are received nevertheless.
func (l *link) explain(context uint32) bool {
	if l.hear(); l.state.lifecycle() != joined {
		l.readTermination()
	}
	return l.err == nil && !l.e.engine.IsRevoked(context)
}

// revoke drops what there is of messages of a communicator. The rest of those that have
// begun is taken, and dropped.
func (l *link) revoke(communicator uint32) {
	drops := func(context uint32) bool { return progress.Revokes(communicator, context) }
	l.in.queue.Revoke(drops)
	for i := range l.in.partials {
		if t := &l.in.partials[i]; t.recv != nil && drops(t.recv.Step.Context) {
			t.release()
		}
	}
	l.in.headUnexpected = false
	l.dropReleased()
	l.tagged.revoke(l, drops)
}

// release has the rest of a message dropped whose receive has ended.
func (t *partial) release() {
	got, size := t.state()
	t.unexpected = &match.Message{Header: match.Header{Call: t.recv.Step.Call, Size: size}, Got: got, Released: true}
	t.recv = nil
}

// revoke drops the copies of messages that wait for room, or for the peer. Those for which an
// operation waits end with it.
func (t *taggedLink) revoke(l *link, drops func(context uint32) bool) {
	t.frames = slices.DeleteFunc(t.frames, func(f taggedFrame) bool {
		drop := f.kind == eagerFrame && f.message == nil && drops(f.match.Context)
		if drop {
			t.dropCopy(len(f.data))
		}
		return drop
	})
	for _, c := range slices.Clone(t.copies) {
		if !drops(c.context) {
			continue
		}
		if t.Withdraw(c.PendingSend) {
			l.SendWithdraw(c.PendingSend)
		}
		l.Withdrawn(c.PendingSend)
		l.endCopy(c.PendingSend)
	}
}

// revoke abandons the messages of a communicator. It leaves them where they are, because it
// may be called while they are flushed.
func (q *sendQueue) revoke(communicator uint32) {
	for i := range q.queue {
		q.queue[i].revoke(communicator)
	}
	for i := range q.rendezvous {
		q.rendezvous[i].revoke(communicator)
	}
}

func (m *outgoing) revoke(communicator uint32) {
	if m.op != nil && progress.Revokes(communicator, m.op.Context) {
		m.op, m.data = nil, nil
	}
}

// abandoned reports whether the message's communicator is revoked.
func (m *outgoing) abandoned() bool { return m.op == nil }

// writeEnd tells the peer that no more comes of a message that is abandoned, if it has begun.
// It returns false if there is no room for that.
func (m *outgoing) writeEnd() bool {
	return !m.begun || m.link.err != nil || m.link.writeControl(controlFrame{kind: abandonFrame, number: m.first})
}

// receiveEnd drops a message of which no more comes.
func (l *link) receiveEnd(c *cell) bool {
	first := c.fragment().number
	l.hear()
	i := l.in.find(first)
	if i < 0 {
		l.protocolError()
		return false
	}
	if t := &l.in.partials[i]; t.recv != nil { // there were too many revocations
		l.e.engine.FailStep(t.recv.Step, l.revoked())
	} else if !t.released() { // this rank does not use the communicator yet
		l.release(t.unexpected.Context)
	}
	if i = l.in.find(first); i < 0 || !l.in.partials[i].released() {
		l.protocolError()
		return false
	}
	t := l.in.partials[i]
	l.in.partials = slices.Delete(l.in.partials, i, i+1)
	l.in.freePlace(&t)
	l.take()
	return true
}
