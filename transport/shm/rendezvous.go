package shm

import (
	"math/bits"
	"unsafe"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
)

// A pendingRendezvous is a message, or the rest of one, that the receiver reads in the
// caller's memory, or asks for.
type pendingRendezvous struct {
	outgoing
	frame  uint32 // the number of the frame that announces it
	place  uint32 // of the receiver's reply, or noPlace: then the receiver sends a pullFrame
	taken  bool   // the receiver has taken the frame
	pulled bool   // the message is to be staged
}

// noPlace is the place of a rendezvous message for whose reply there is none.
const noPlace = 1<<32 - 1

func (s *sendRing) hasPlace() bool { return s.places != 1<<rendezvousMax-1 }

// takePlace returns a place for the receiver's reply, or noPlace.
func (s *sendRing) takePlace() uint32 {
	if !s.hasPlace() {
		return noPlace
	}
	place := uint32(bits.TrailingZeros32(^s.places))
	s.places |= 1 << place
	return place
}

// byRendezvous reports whether a message that has not begun goes by rendezvous to all
// of its receivers. They can read this process's memory if this one can read theirs, and
// the arena in any case.
func (e *Endpoint) byRendezvous(group []outgoing) bool {
	_, shared := e.place(group[0].data)
	least := rendezvousMin
	switch {
	case shared:
		least = sharedMin
	case len(group) > 1:
		least = rendezvousManyMin
	case len(group[0].op.Recvs) > 0 && !e.wait.Oversubscribed:
		least = exchangedMin
	}
	if group[0].begun || len(group[0].data) < least {
		return false
	}
	for i := range group {
		if l := group[i].link; !l.out.hasPlace() || l.state.lifecycle() != joined || !shared && !l.canReadPeer() {
			return false
		}
	}
	return true
}

// announce writes the frame that says where the rest of a message lies.
func (e *Endpoint) announce(m *outgoing) {
	l := m.link
	c := l.out.next()
	k := remainderFrame
	if !m.begun {
		k = rendezvousFrame
		m.begin(c, &m.op.Call)
	}
	place := l.out.takePlace()
	arenaPlace, shared := e.place(m.data)
	c.setRemote(m.data, m.sent, m.first, place, arenaPlace, shared)
	l.publish(c, k)
	if !shared {
		e.out.promoter.note(m.data[m.sent:])
	}
	e.out.rendezvous = append(e.out.rendezvous, pendingRendezvous{outgoing: *m, frame: l.out.written, place: place})
	if place == noPlace {
		(*hooks)(e).AddWaiters(l.peer, 1) // for the pullFrame
	}
}

// freePlace notes that a rendezvous is complete.
func (l *link) freePlace(place uint32) {
	if place == noPlace {
		(*hooks)(l.e).AddWaiters(l.peer, -1)
		return
	}
	l.out.places &^= 1 << place
}

// reply returns what the receiver has said about the message.
func (r *pendingRendezvous) reply() reply {
	switch {
	case r.pulled:
		return pulls
	case r.place == noPlace:
		return deferred
	case !r.taken:
		if r.taken = r.link.out.hasTaken(r.frame); !r.taken {
			return deferred
		}
	}
	return replyAt(r.link.out.ring.replies.Load(), r.place)
}

// finishRendezvous reports whether a rendezvous is complete: its receiver has read the
// message, or has asked for it, and all of it is staged, or it was abandoned.
func (e *Endpoint) finishRendezvous(r *pendingRendezvous) bool {
	l := r.link
	if r.abandoned() && l.err != nil {
		return true
	}
	switch r.reply() {
	case complete:
		e.polls.progressed = true
		return true
	case deferred:
		return false
	case pulls:
		r.pulled = true
	default:
		l.protocolError()
		return false
	}
	if r.abandoned() {
		return r.writeEnd()
	}
	for r.sent < len(r.data) {
		b := noBuffer
		if l.out.hasCell() {
			b = e.freeBuffer(forRequested)
		}
		if b == noBuffer {
			return false
		}
		e.polls.progressed = true
		r.writeStaged(&r.op.Call, b, e.stage(b, r.data[r.sent:]))
	}
	return true
}

// pull notes that the receiver asks for the message that a frame has announced.
func (q *sendQueue) pull(l *link, frame uint32) {
	for i := range q.rendezvous {
		if r := &q.rendezvous[i]; r.link == l && r.frame == frame && r.place == noPlace {
			r.pulled = true
		}
	}
}

// valid reports whether a peer can have announced a message of which got bytes have
// arrived, and this rank has a place for the reply.
func (p *remotePayload) valid(got int, places uint32) bool {
	return p.offset == uint64(got) && p.offset < p.total && p.total <= totalMax &&
		(p.place == noPlace || p.place < rendezvousMax && places>>p.place&1 == 0)
}

// readAnnounced reads a message that the peer has announced from the peer's memory, if
// that is possible. Otherwise it asks for the message. It returns false if the peer has
// gone, or is none.
func (l *link) readAnnounced(t partial) bool {
	before, _ := t.state()
	switch {
	case t.remote.place == noPlace:
	case t.remote.shared != 0:
		if b, err := l.shared(t.remote.address, t.remote.total); err == nil {
			return l.readShared(t, b)
		}
	case l.canReadPeer():
		err := l.readRemote(&t)
		got, _ := t.state()
		switch {
		case got == before && err != errOtherProcess: // not allowed: ask for the message
			l.cma = cmaFails
		default:
			return l.finishRead(&t)
		}
	}
	l.reply(&t, pulls)
	l.in.partials = append(l.in.partials, t)
	return true
}

// finishRead completes the receive of a message that was read in the peer's memory. It drops
// what was read if the peer may have had something else there: if it has terminated, or has
// revoked the communicator. It returns false if the peer has gone.
func (l *link) finishRead(t *partial) bool {
	whole, s := t.complete(), t.recv.Step
	unchanged := l.state.unchanged(l.heard)
	l.reply(t, complete) // before anything that polls: its frame may be at the head of the ring
	if whole && (unchanged || l.explain(s.Context)) {
		l.finish(t)
		return true
	}
	if !whole && l.explain(s.Context) {
		l.end(&transport.PeerError{Peer: l.peer, Err: transport.ErrLost, Reason: "its process has ended"})
	}
	if l.err == nil {
		return true
	}
	l.e.engine.FailStep(s, l.err)
	return false
}

// reply answers the announcement of a message, and takes its frame, unless that was
// taken when the message was deferred. A message without a place is asked for by a frame.
func (l *link) reply(t *partial, r reply) {
	if place := t.remote.place; place != noPlace {
		l.in.places &^= 1 << place
		if r != complete {
			l.in.places |= 1 << place
		}
		if replies := l.in.replies&^replyMask.at(place) | r.at(place); replies != l.in.replies {
			l.in.replies = replies
			l.in.ring.replies.Store(replies)
		}
	} else if r == pulls {
		l.control(controlFrame{kind: pullFrame, number: t.announced})
	}
	taken := t.waits
	if t.waits = r == deferred; !taken {
		l.take()
		return
	}
	l.noteWakeup(took)
	l.e.polls.progressed = true
}

// readRemote reads a message from the peer's memory. Where it is combined, it is read in
// pieces that are still in cache then. It leaves off at an error.
func (l *link) readRemote(t *partial) error {
	r, address := t.recv, uintptr(t.remote.address)
	for {
		b := l.landing(r)
		if err := l.process.read(b, address+uintptr(r.Got)); err != nil {
			return err
		}
		if r.Combine == nil {
			r.Got = len(r.Into)
			return nil
		}
		if r.Put(b); r.Got == len(r.Into) {
			return nil
		}
	}
}

const (
	// combinedLen is how many bytes are read at a time into the memory where they are
	// combined with an operand that lies elsewhere.
	combinedLen = 1 << 20
	// bulkLen is the same where they are combined with what is there, and read into
	// memory of the endpoint's.
	//
	// Measured in November 2026 by a program in C, in µs, 1 MiB and 4 MiB that are read and
	// summed up, there by 1 MiB at a time, by 512 and by 256 KiB: 61, 64, 68 and 250, 260,
	// 275; elsewhere by 512, 256 and 128 KiB: 75, 76, 83 and 308, 316, 345.
	bulkLen = 256 << 10
)

// landing returns the memory into which the next bytes of a message are read.
func (l *link) landing(r *match.Recv) []byte {
	rest := r.Into[r.Got:]
	switch {
	case r.Combine == nil:
		return rest
	case unsafe.SliceData(r.Into) != unsafe.SliceData(r.Held):
		return rest[:min(combinedLen, len(rest))]
	}
	elem := max(r.Elem, 1)
	return l.e.bulkBuffer(min(max(bulkLen/elem, 1)*elem, len(rest)))
}

func (e *Endpoint) bulkBuffer(n int) []byte {
	if cap(e.bulk) < n {
		e.bulk = make([]byte, max(n, bulkLen))
	}
	return e.bulk[:n]
}
