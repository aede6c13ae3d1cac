package shm

import (
	"slices"

	"github.com/chorale-go/chorale/transport/internal/match"
)

// A partial is a message of a step that has arrived in part.
type partial struct {
	first      uint32         // the number of the frame that it began with
	recv       *match.Recv    // where it goes: to a receive,
	unexpected *match.Message // or to an unexpected message
	remote     remotePayload  // where the rest of it lies, once that was announced
	announced  uint32         // the number of the frame that announced it; it may be 0
	waits      bool           // this rank has deferred its reply to the announcement
}

// state returns how many bytes have arrived, and how many there are.
func (t *partial) state() (got, size int) {
	if t.recv != nil {
		return t.recv.Got, len(t.recv.Into)
	}
	return t.unexpected.Got, t.unexpected.Size
}

// released reports whether what arrives of the message is dropped.
func (t *partial) released() bool { return t.recv == nil && t.unexpected.Released }

// continuesAt reports whether n bytes at an offset are the next ones of the message.
func (t *partial) continuesAt(offset uint64, n int) bool {
	got, size := t.state()
	return offset == uint64(got) && n <= size-got
}

// queues reports whether what arrives of the message is kept until it is expected.
func (t *partial) queues() bool { return t.recv == nil && !t.unexpected.Released }

// put takes the next bytes to where they go. Memory of an unexpected message grows with
// what arrives: its sender may be told to go no further.
func (t *partial) put(p []byte) {
	if t.recv != nil {
		t.recv.Put(p)
		return
	}
	m := t.unexpected
	m.Got += len(p)
	switch {
	case m.Released:
	case m.Data == nil && len(p) == m.Size:
		m.Data = slices.Clone(p)
	default:
		if m.Data == nil {
			m.Data = make([]byte, 0, min(m.Size, rendezvousMin))
		}
		m.Data = append(m.Data, p...)
	}
}

// complete reports whether the whole message has arrived.
func (t *partial) complete() bool {
	got, size := t.state()
	return got == size
}

// finish completes the receive of a message that has arrived.
func (l *link) finish(t *partial) {
	if t.recv != nil {
		l.in.queue.Complete(t.recv)
	}
}

// find returns the message that a frame continues.
func (r *recvRing) find(first uint32) int {
	return slices.IndexFunc(r.partials, func(t partial) bool { return t.first == first && !t.waits })
}

// arriving reports whether more of a message is to come in frames.
func (r *recvRing) arriving() bool {
	return len(r.partials) > 0 && slices.ContainsFunc(r.partials, func(t partial) bool { return !t.waits })
}

// receiveChunk continues a message out of a staging buffer.
func (l *link) receiveChunk(c *cell) bool {
	p := *c.staged()
	i := l.in.find(p.first)
	if i < 0 {
		l.protocolError()
		return false
	}
	t := l.in.partials[i]
	if !l.unstage(t, c.step().size, &p) {
		return false
	}
	if !t.complete() {
		return true
	}
	l.in.partials = slices.Delete(l.in.partials, i, i+1)
	l.in.freePlace(&t)
	l.finish(&t)
	l.admit()
	return true
}

// freePlace frees the place of a message if it was pulled.
func (r *recvRing) freePlace(t *partial) {
	if t.remote.total > 0 && t.remote.place != noPlace {
		r.places &^= 1 << t.remote.place
	}
}

// receiveRemainder continues a message out of the peer's memory.
func (l *link) receiveRemainder(c *cell) bool {
	p := *c.remote()
	i := l.in.find(p.first)
	if i < 0 || l.in.partials[i].remote.total > 0 {
		l.protocolError()
		return false
	}
	t := l.in.partials[i]
	if got, size := t.state(); !p.valid(got, l.in.places) || p.total != uint64(size) {
		l.protocolError()
		return false
	}
	l.in.partials = slices.Delete(l.in.partials, i, i+1)
	return l.receiveAnnounced(t, p)
}

// receiveAnnounced reads a message that the frame at the head of the ring announces. If
// its receive is not there, the message stays with its sender.
func (l *link) receiveAnnounced(t partial, p remotePayload) bool {
	t.remote, t.announced = p, l.in.taken+1
	switch {
	case t.recv != nil:
		return l.readAnnounced(t)
	case t.unexpected.Released:
		l.dropAnnounced(t)
		return true
	}
	l.reply(&t, deferred)
	l.in.partials = append(l.in.partials, t)
	return true
}

// dropAnnounced lets the peer go on whose message this rank will not receive. Without a
// place for a reply that says so, the contents are asked for, and dropped.
func (l *link) dropAnnounced(t partial) {
	if t.remote.place != noPlace {
		l.reply(&t, complete)
		return
	}
	l.reply(&t, pulls)
	l.in.partials = append(l.in.partials, t)
}

// unstage takes the next bytes of a message, n of them, out of a staging buffer.
func (l *link) unstage(t partial, n uint32, p *stagedPayload) bool {
	b, ok := l.staged(p.buffer, n)
	if !ok || !t.continuesAt(p.offset, int(n)) || t.queues() && !l.mayQueue(int(n)) {
		l.protocolError()
		return false
	}
	t.put(b)
	l.take()
	return true
}
