package shm

import (
	"slices"
	"time"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
	"github.com/chorale-go/chorale/transport/internal/progress"
)

// A taggedLink is the part of a link that carries tagged messages. Package progress
// has their protocol; here are its frames.
//
// An eager message is in a cell or a staging buffer; where there is no room, a copy
// waits until there is. The contents of a rendezvous message follow in staging buffers
// when the receiver asks for them. So tagged messages are taken out of the ring at
// once, and hold up nothing. An eager message that finds no staging buffer for long is
// sent by rendezvous, out of its copy.
type taggedLink struct {
	progress.TaggedPeer
	controls []controlFrame          // frames without contents that wait for room
	frames   []taggedFrame           // messages and announcements that do
	cleared  []*progress.PendingSend // messages whose contents the peer has asked for
	reading  []*progress.PendingSend // messages that the peer may read in this process's memory
	copies   []announcedCopy         // for which no operation waits
	held     int                     // what the eager messages of the peer count that were not received
	unsent   int                     // what all copies of messages count: the credits bound it
	take     func(*match.Tagged)     // takeOffered
}

// An announcedCopy is a message that is sent by rendezvous out of its copy.
type announcedCopy struct {
	*progress.PendingSend
	context uint32
}

// A controlFrame is a frame of the tagged-message protocol without contents.
type controlFrame struct {
	kind   frameKind
	number uint32
	value  int // the credits, or the address
}

// A taggedFrame is an eager message, or the announcement or withdrawal of a
// rendezvous message.
type taggedFrame struct {
	kind          frameKind // eagerFrame, rtsFrame or withdrawFrame
	match         transport.Match
	typeName      string
	send          *progress.PendingSend // of a rendezvous message
	data          []byte                // of an eager message that waits for room: a copy,
	message       *progress.Message     // or the memory of this message
	noBufferSince time.Time
}

// expectsTagged reports whether an operation waits for a tagged message from the
// peer, or for a transfer.
func (l *link) expectsTagged() bool { return l.tagged.Waiters > 0 || l.e.polls.anySource > 0 }

// enqueueTagged writes a frame without contents behind those that wait for room, or has
// it wait with them.
func (l *link) enqueueTagged(f taggedFrame) {
	if len(l.tagged.frames) == 0 && l.writeTagged(&f, nil) {
		return
	}
	l.tagged.frames = append(l.tagged.frames, f)
	if l.e.polls.unflushed = true; f.kind != rtsFrame { // otherwise a message in progress waits for it
		l.e.startFlusher()
	}
}

// copyUnwritten completes the eager messages that have waited for room for long: copies
// wait in their place.
func (e *Endpoint) copyUnwritten() {
	for i := range e.links {
		l := &e.links[i]
		for j := range l.tagged.frames {
			f := &l.tagged.frames[j]
			if f.message == nil {
				continue
			}
			m := f.message
			f.data, f.message = slices.Clone(f.data), nil
			l.tagged.unsent += len(f.data) + transport.MessageCost
			e.startFlusher()
			m.Written()
		}
	}
}

// writeTagged writes a frame if there is room. The contents of an eager message come
// behind its type.
func (l *link) writeTagged(f *taggedFrame, data []byte) bool {
	if f.kind == eagerFrame && l.writeEagerPair(f.match, f.typeName, data) {
		return true
	}
	if !l.out.hasCell() {
		return false
	}
	c := l.out.next()
	k, b := f.kind, noBuffer
	into := c.body[:]
	if k == rtsFrame {
		into = c.rts().typeName[:]
	}
	n := len(f.typeName) + len(data)
	if n > len(into) {
		if b = l.e.freeBuffer(forEager); b == noBuffer {
			return false
		}
		l.e.stage(b, nil)
		into = l.e.buffer(b)
		k = stagedKind(k)
	}
	c.setTagged(n, f.match.Context, f.match.Tag, len(f.typeName))
	switch {
	case f.kind == rtsFrame:
		c.setRTS(f.send, l.e.address(f.send.Data), b)
	case f.kind == withdrawFrame:
		c.setFragment(0, 0, f.send.Number, b)
	case b != noBuffer:
		c.setFragment(n, 0, 0, b)
	}
	copy(into[copy(into, f.typeName):], data)
	l.publish(c, k)
	if b != noBuffer {
		l.e.addReader(b, l)
	}
	return true
}

// control writes a frame without contents, or has it wait for room.
func (l *link) control(f controlFrame) {
	if l.err != nil || l.e.engine.Failed() {
		return
	}
	if len(l.tagged.controls) > 0 || !l.writeControl(f) {
		l.tagged.controls = append(l.tagged.controls, f)
		l.e.startFlusher()
	}
}

func (l *link) writeControl(f controlFrame) bool {
	if !l.out.hasCell() {
		return false
	}
	c := l.out.next()
	c.setFragment(0, f.value, f.number, noBuffer)
	l.publish(c, f.kind)
	return true
}

// SendRTS implements [progress.Wire].
func (l *link) SendRTS(s *progress.PendingSend, m transport.Match, typeName string) {
	l.offer(s)
	l.enqueueTagged(taggedFrame{kind: rtsFrame, match: m, typeName: typeName, send: s})
}

// SendWithdraw implements [progress.Wire]. An announcement that still waits for room is
// dropped: a program that cancels one send after another queues nothing.
func (l *link) SendWithdraw(s *progress.PendingSend) {
	if i := slices.IndexFunc(l.tagged.frames, func(f taggedFrame) bool { return f.send == s }); i >= 0 {
		l.tagged.frames = slices.Delete(l.tagged.frames, i, i+1)
		return
	}
	l.enqueueTagged(taggedFrame{kind: withdrawFrame, send: s})
}

// Withdrawn implements [progress.Wire].
func (l *link) Withdrawn(s *progress.PendingSend) {
	other := func(s2 *progress.PendingSend) bool { return s2 == s }
	l.tagged.cleared = slices.DeleteFunc(l.tagged.cleared, other)
	l.tagged.reading = slices.DeleteFunc(l.tagged.reading, other)
	if s.Offer != 0 {
		l.e.state.decide(offer(s.Offer)) // the receiver may come later
	}
	l.e.out.offers.end(s)
}

// Gone implements [progress.Wire].
func (l *link) Gone() bool { return l.err != nil }

// flushTaggedFrames writes what there is room for of all that waits for it.
func (e *Endpoint) flushTaggedFrames() {
	e.polls.unflushed = false
	for i := range e.links {
		if l := &e.links[i]; l.flushTagged() {
			e.polls.unflushed = true
		}
	}
	if !e.polls.unflushed {
		e.engine.Flushed()
	}
}

// flushTagged writes what there is room for on one link, and reports whether something
// is left.
func (l *link) flushTagged() bool {
	t := &l.tagged
	for len(t.controls) > 0 && l.writeControl(t.controls[0]) {
		t.controls = t.controls[1:]
		l.e.polls.progressed = true
	}
	for len(t.frames) > 0 && l.flushFrame(&t.frames[0]) {
		t.frames[0] = taggedFrame{}
		t.frames = t.frames[1:]
		l.e.polls.progressed = true
	}
	for len(t.cleared) > 0 && l.writeFragment(t.cleared[0]) {
		if s := t.cleared[0]; s.Sent == len(s.Data) {
			t.cleared = slices.Delete(t.cleared, 0, 1)
			if !s.Copied() {
				s.Complete()
			} else {
				l.endCopy(s)
			}
		}
		l.e.polls.progressed = true
	}
	return len(t.controls)+len(t.frames)+len(t.cleared)+len(t.copies) > 0
}

// endCopy ends the sending of a copy that was announced.
func (l *link) endCopy(s *progress.PendingSend) {
	t := &l.tagged
	t.copies = slices.DeleteFunc(t.copies, func(c announcedCopy) bool { return c.PendingSend == s })
	t.dropCopy(len(s.Data))
	(*hooks)(l.e).AddWaiters(l.peer, -1)
}

// dropCopy forgets a copy of some size, and takes its credits back.
func (t *taggedLink) dropCopy(size int) {
	t.unsent -= size + transport.MessageCost
	t.Credits.Refund(size)
}

// flushFrame writes a frame that waits for room, or announces its message instead.
func (l *link) flushFrame(f *taggedFrame) bool {
	if !l.writeTagged(f, f.data) {
		return l.switchToRendezvous(f)
	}
	switch {
	case f.kind != eagerFrame:
	case f.message != nil:
		f.message.Written()
	default:
		l.tagged.unsent -= len(f.data) + transport.MessageCost
	}
	return true
}

// switchToRendezvous announces an eager message that has found no staging buffer for
// groupTimeout. Its copy keeps its credits until the receiver has asked for it.
func (l *link) switchToRendezvous(f *taggedFrame) bool {
	if f.kind != eagerFrame || f.message != nil || len(f.typeName) > rtsTypeMax || !l.out.hasCell() || !l.e.lacksBuffer(&f.noBufferSince) {
		return false
	}
	s := l.tagged.AnnounceCopy(f.data)
	l.writeTagged(&taggedFrame{kind: rtsFrame, match: f.match, typeName: f.typeName, send: s}, nil)
	l.tagged.copies = append(l.tagged.copies, announcedCopy{s, f.match.Context})
	(*hooks)(l.e).AddWaiters(l.peer, 1)
	return true
}

// writeFragment writes the next bytes of a message that the peer has asked for.
func (l *link) writeFragment(s *progress.PendingSend) bool {
	if !l.out.hasCell() {
		return false
	}
	b := l.e.freeBuffer(forRequested)
	if b == noBuffer {
		return false
	}
	n := l.e.stage(b, s.Data[s.Sent:])
	c := l.out.next()
	c.setFragment(n, s.Sent, s.Number, b)
	s.Sent += n
	l.publish(c, fragmentFrame)
	l.e.addReader(b, l)
	return true
}

// startFlusher has the frames that wait for room written, also while this rank does
// something else. The progress owner does so while there is one.
func (e *Endpoint) startFlusher() {
	e.polls.unflushed = true
	if !e.engine.Owned() {
		e.engine.StartFlusher()
	}
}

// needsFlusher reports whether frames wait for room that belong to no message in
// progress.
func (e *Endpoint) needsFlusher() bool {
	for i := range e.links {
		t := &e.links[i].tagged
		if len(t.controls)+len(t.copies) > 0 || t.unsent > 0 || slices.ContainsFunc(t.frames, func(f taggedFrame) bool { return f.kind == withdrawFrame }) {
			return true
		}
	}
	return false
}
