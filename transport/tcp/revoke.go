package tcp

import (
	"slices"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/progress"
)

// A revocation is told by a frame of its own, behind the frame that has begun and before
// all others. What has begun in the communicator's contexts is completed, or ends there:
// the peer, which throws it away, expects no more of it behind the revocation.

// Revoke implements [transport.Revoker]. The members to which there is no link are dialed:
// they may wait for others than this rank, which are in no call.
func (e *Endpoint) Revoke(communicator uint32, why error) {
	e.engine.Lock()
	defer e.engine.Unlock()
	if e.engine.ErrIn(communicator<<transport.ContextBits) != nil {
		return
	}
	e.engine.RevokeLocked(communicator, why)
	for peer := range e.links {
		if e.engine.Told(communicator, peer) {
			e.dialed(peer)
		}
	}
}

// SetMembers implements [transport.Revoker].
func (e *Endpoint) SetMembers(communicator uint32, ranks []int) {
	e.engine.SetMembers(communicator, ranks)
}

// OnRevoke has f called, in a goroutine of its own, for every communicator that is revoked
// from now on.
func (e *Endpoint) OnRevoke(f func(communicator uint32, why *transport.PeerError)) {
	e.engine.OnRevoke(f)
}

// Revoked implements [transport.Revoker].
func (e *Endpoint) Revoked(communicator uint32) error { return e.engine.Revoked(communicator) }

// Revoke implements [progress.Transport]. It writes nothing itself: its caller may be
// taking frames.
func (h *hooks) Revoke(communicator uint32, why *transport.PeerError) {
	for peer, l := range h.links {
		if l == nil {
			continue
		}
		l.dropRevoked()
		if l.phase == up && l.err == nil && !l.notice.done && h.engine.Told(communicator, peer) {
			l.out.controls = appendRevocation(l.out.controls, communicator, why)
			l.flushLater()
		}
	}
}

// appendRevocation appends the frame that tells a peer of a revocation.
func appendRevocation(b []byte, communicator uint32, why *transport.PeerError) []byte {
	text := progress.AppendRevocation(nil, why)
	return append(header{kind: revocationFrame, context: communicator, text: len(text)}.append(b), text...)
}

// tellRevocations tells the peer of a link that is new what was revoked before.
func (l *link) tellRevocations() {
	for communicator, why := range l.e.engine.Revocations(l.peer) {
		l.out.controls = appendRevocation(l.out.controls, communicator, why)
	}
}

// dropRevoked drops what is in progress on the link in contexts that are revoked, but for
// tagged messages that this rank sends: those end one by one.
func (l *link) dropRevoked() {
	revoked := l.e.engine.IsRevoked
	l.in.queue.Revoke(revoked)
	l.in.unexpectedLen = l.in.queue.Held()
	l.resume()
	l.in.discard(revoked)
	l.out.drop(func(m *outgoing) bool { return m.op != nil && revoked(m.op.Context) })
	if l.in.headUnexpected {
		l.e.recheck(l)
	}
}

// discard has what is still to come for the receives of some contexts be thrown away.
func (in *recvBuffer) discard(context func(uint32) bool) {
	if in.recv != nil && context(in.context) {
		in.recv = nil
	}
	for i := range in.partials {
		if context(in.partials[i].context) {
			in.partials[i].recv = nil
		}
	}
	if m := in.message; m != nil && m.Rendezvous && context(m.Context) {
		in.message, in.discards = nil, true
	}
}

// drop removes messages, of whose memory nothing is read from then on: a frame that has
// begun is completed from a copy.
func (s *sendBuffer) drop(drops func(m *outgoing) bool) {
	if s.current >= 0 && drops(&s.queue[s.current]) {
		s.queue = slices.Delete(s.queue, s.current, s.current+1)
		s.body, s.current, s.dropped = slices.Clone(s.body), -1, true
	}
	before := 0 // the one that is being written
	for i := range s.queue {
		if i < s.current && drops(&s.queue[i]) {
			before++
		}
	}
	s.queue = slices.DeleteFunc(s.queue, func(m outgoing) bool { return drops(&m) })
	s.current -= before
}

// handleRevocation takes what the peer says of a communicator. It sends nothing more in the
// contexts: what has not come by now of a message that it has begun does not come.
func (l *link) handleRevocation(h header, text []byte) error {
	if err := l.e.engine.HearRevocation(h.context, text); err != nil {
		return err
	}
	in := &l.in
	if in.rest > 0 && progress.Revokes(h.context, in.context) {
		in.partial = partial{}
	}
	in.partials = slices.DeleteFunc(in.partials, func(p partial) bool { return progress.Revokes(h.context, p.context) })
	l.tagged.asked = slices.DeleteFunc(l.tagged.asked, func(a asked) bool { return progress.Revokes(h.context, a.context) })
	return nil
}
