package tcp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
	"github.com/chorale-go/chorale/transport/internal/progress"
)

// A taggedLink is the part of a link that carries tagged messages. Package progress
// has their protocol; here are its frames. They are always read at once, and hold up
// nothing: the contents of a rendezvous message come when the receiver asks for them,
// and go to where they are to be.
type taggedLink struct {
	progress.TaggedPeer
	queued bool    // frames wait to be written, also while no goroutine of the program waits
	asked  []asked // rendezvous messages of the peer, until all of their contents have come
}

// An asked message is one that the peer may send the contents of. Where its receive has
// ended with its communicator, they are thrown away.
type asked struct {
	number, context uint32
	rest            int // bytes to come
}

// fragment notes that bytes come of a message, and reports whether it was asked for them.
func (l *taggedLink) fragment(number uint32, size int) bool {
	i := slices.IndexFunc(l.asked, func(a asked) bool { return a.number == number })
	if i < 0 || size > l.asked[i].rest {
		return false
	}
	if l.asked[i].rest -= size; l.asked[i].rest == 0 {
		l.asked = slices.Delete(l.asked, i, i+1)
	}
	return true
}

// withdrawn notes that no more comes of a message.
func (l *taggedLink) withdrawn(number uint32) {
	l.asked = slices.DeleteFunc(l.asked, func(a asked) bool { return a.number == number })
}

// expectsTagged reports whether an operation waits for a tagged message from the
// peer, or for a transfer.
func (l *link) expectsTagged() bool { return l.tagged.Waiters > 0 || l.e.polls.anySource > 0 }

// enqueueTagged writes a frame of a tagged message, behind all that is queued. What
// the stream does not take now is copied, and written by the flusher.
func (l *link) enqueueTagged(h header, tag int, typeName string, data []byte) {
	h.text = tagLen + len(typeName)
	frame := l.out.buf[:0]
	deferred := h.kind == eagerFrame && l.defers(len(data))
	behind := deferred || l.out.pending()
	if behind {
		frame = l.out.batch()
	}
	frame = binary.LittleEndian.AppendUint64(h.append(frame), uint64(tag))
	frame = append(frame, typeName...)
	switch {
	case behind:
		l.out.queue = append(l.out.queue, outgoing{frames: true, data: append(frame, data...)})
		if deferred {
			return
		}
		l.writeBurst()
	case len(data) <= copyMax:
		l.out.head = append(frame, data...)
		l.flush()
	default:
		l.out.head, l.out.body = frame, data
		l.flush()
		l.out.body = slices.Clone(l.out.body)
	}
	l.flushLater()
}

// flushLater has the flusher write what the stream has not taken.
func (l *link) flushLater() {
	if l.out.pending() && l.err == nil && !l.e.engine.Failed() {
		l.e.watch(l)
		l.setTaggedQueued(true)
	}
}

// setTaggedQueued says whether the link has frames for the flusher.
func (l *link) setTaggedQueued(queued bool) {
	if l.tagged.queued == queued {
		return
	}
	l.tagged.queued = queued
	if queued {
		l.e.queued.tagged++
		l.e.engine.StartFlusher()
	} else {
		l.e.queued.tagged--
	}
}

// taggedDone ends the flusher when all is written.
func (l *link) taggedDone() {
	if !l.tagged.queued || l.out.pending() {
		return
	}
	l.setTaggedQueued(false)
	if l.e.queued.tagged == 0 {
		l.e.engine.Flushed()
	}
}

// controlSoon has settle write a frame without contents before all that is queued: the
// caller may be parsing.
func (l *link) controlSoon(h header) {
	if l.err == nil && !l.e.engine.Failed() && !l.out.broken {
		l.out.controls = h.append(l.out.controls)
		l.out.ready = true
		l.e.recheck(l)
	}
}

// SendRTS implements [progress.Wire].
func (l *link) SendRTS(s *progress.PendingSend, m transport.Match, typeName string) {
	l.enqueueTagged(header{kind: rtsFrame, context: m.Context, sequence: s.Number, total: len(s.Data)}, m.Tag, typeName, nil)
}

// SendWithdraw implements [progress.Wire].
func (l *link) SendWithdraw(s *progress.PendingSend) {
	l.enqueueTagged(header{kind: withdrawFrame, sequence: s.Number}, 0, "", nil)
}

// Withdrawn implements [progress.Wire].
func (l *link) Withdrawn(s *progress.PendingSend) {
	l.out.drop(func(m *outgoing) bool { return m.send == s })
}

// Gone implements [progress.Wire].
func (l *link) Gone() bool { return l.err != nil }

// handleTagged begins with a frame of the tagged-message protocol.
func (l *link) handleTagged(h header, text []byte) error {
	switch h.kind {
	case eagerFrame, rtsFrame:
		return l.beginEager(h, text)
	case withdrawFrame:
		l.tagged.withdrawn(h.sequence)
		l.e.engine.Tagged().Withdraw(l.peer, h.sequence)
	case ctsFrame:
		if s := l.tagged.CTS(h.sequence); s != nil {
			l.out.queue = append(l.out.queue, outgoing{send: s, data: s.Data})
			l.out.ready = true
			l.e.recheck(l)
		}
	case fragmentFrame:
		if !l.tagged.fragment(h.sequence, h.body) {
			return fmt.Errorf("%d bytes of a tagged message that no receive has asked for", h.body)
		}
		l.in.left = h.body
		if m := l.e.engine.Tagged().Requested(l.peer, h.sequence); m != nil {
			l.in.message = m
			l.messageGot(0)
		} else {
			l.in.discards = h.body > 0
		}
	case creditFrame:
		l.tagged.Credits.Return(h.total)
	case holdFrame:
		if l.out.hold(h.context); len(l.out.held) > heldContextsMax {
			return fmt.Errorf("%d contexts held", len(l.out.held))
		}
	case resumeFrame:
		l.out.resume(h.context)
		l.e.recheck(l)
	}
	return nil
}

// beginEager begins with an eager message, or takes the announcement of a rendezvous
// message.
func (l *link) beginEager(h header, text []byte) error {
	switch {
	case len(text) < tagLen:
		return errors.New("a tagged message without a tag")
	case h.kind == eagerFrame && (h.total > match.EagerMax || h.body != h.total):
		return fmt.Errorf("an eager message of %d bytes", h.total)
	case h.kind == eagerFrame && !l.tagged.Credits.Arrive(h.total):
		return errors.New("an eager message without credits")
	}
	info := transport.MessageInfo{From: l.peer, Tag: int(binary.LittleEndian.Uint64(text)), Size: h.total, Type: l.tagged.TypeName(text[tagLen:])}
	if h.kind == rtsFrame {
		if l.e.engine.Tagged().Overrun(l.peer) {
			return errors.New("more announcements than a rank makes")
		}
		l.e.engine.Announced(&info, h.context, h.sequence)
		return nil
	}
	m := l.e.engine.Tagged().New(h.total)
	m.MessageInfo, m.Context = info, h.context
	l.in.message, l.in.left = m, h.body
	l.messageGot(0)
	return nil
}

// messageGot notes that n bytes of a tagged message are where they go.
func (l *link) messageGot(n int) {
	m := l.in.message
	m.Got += n
	if l.in.left -= n; l.in.left > 0 {
		return
	}
	l.in.message = nil
	switch {
	case !m.Rendezvous:
		l.e.engine.Arrived(m)
	case m.Got == m.Size:
		m.Done(nil)
	}
}

// dropTagged notes that the link has ended: no tagged message leaves any more, and the
// rendezvous messages of the peer are lost.
func (l *link) dropTagged() {
	l.out.head, l.out.body, l.out.controls, l.out.current = nil, nil, nil, -1
	l.out.queue = slices.DeleteFunc(l.out.queue, func(m outgoing) bool { return m.op == nil })
	l.setTaggedQueued(false)
	if l.e.queued.tagged == 0 && l.e.queued.notices == 0 {
		l.e.engine.Flushed()
	}
	l.e.engine.PeerGone(l.peer, l.err)
	l.tagged.Drop()
}

// batch takes the last frames from the queue, if more may be written together with them,
// and returns them, or memory for others.
func (s *sendBuffer) batch() (frames []byte) {
	if n := s.batched(); n == 0 || n > burstBytesMax {
		frames, s.spare = s.spare[:0], nil
		return frames
	}
	last := len(s.queue) - 1
	frames = s.queue[last].data
	s.queue = s.queue[:last]
	return frames
}

// batched returns how many bytes of frames at the end of the queue may be written together
// with others.
func (s *sendBuffer) batched() int {
	if n := len(s.queue); n > 0 && s.queue[n-1].frames && !s.queue[n-1].begun {
		return len(s.queue[n-1].data)
	}
	return 0
}

// queuedFrames returns the frames of eager messages that wait for what is before them.
func (s *sendBuffer) queuedFrames() (b []byte) {
	for _, m := range s.queue {
		if m.frames && !m.begun {
			b = append(b, m.data...)
		}
	}
	return b
}
