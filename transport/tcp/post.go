package tcp

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/chorale-go/chorale/transport"
)

// A postman is the part of a link that carries letters.
//
// A short letter travels whole. A long one is offered; its contents follow when
// the receiver grants that, into the memory where they are to be. So letters
// are always read at once, and hold up nothing.
type postman struct {
	waits   int       // operations that wait for letters, or for word of them
	untaken int       // what the short letters cost that the peer may not have taken
	taken   int       // what those of the peer cost that were taken, unknown to it
	offers  uint32    // letters that this rank has offered
	lent    []*loan   // offered to the peer, and not granted
	granted []*letter // granted to the peer, and not here
	letter  *letter   // where the bytes of the current frame go
	kind    string    // the type of the last letter
	due     bool      // a letter was granted to this rank, and is to be written
	carrier *op       // sees to it that what was posted is written
}

// A loan is a letter that this rank has offered.
type loan struct {
	number uint32
	data   []byte
	op     *op
}

// creditStep is how much taken letters cost before their sender is told.
const creditStep = unreadMost / 4

const tagLen = 8 // bytes of a tag before a type

var errWithdrawn = errors.New("tcp: the letter was withdrawn")

// connected returns when the link is up.
func (l *link) connected(ctx context.Context) error {
	e := l.e
	for l.phase != up && l.err == nil {
		if err := e.run(ctx, errand{on: l, connects: true}); err != nil {
			return err
		}
	}
	// Who only posts would never learn what the peer has said.
	l.listen()
	if e.err != nil {
		return e.ended()
	}
	return l.err
}

// linked wakes who waits for the link to come up.
func (l *link) linked() {
	for _, o := range l.e.ops {
		if o.connects && o.on == l {
			o.finish(nil)
		}
	}
}

// lend offers a letter and returns when the peer has taken it.
func (l *link) lend(ctx context.Context, stamp transport.Stamp, kind string, data []byte) error {
	e := l.e
	l.offers++
	o := e.begin(ctx, transport.Step{})
	o.errand = errand{mail: true, on: l}
	defer e.leave(o)
	d := &loan{number: l.offers, data: data, op: o}
	l.lent = append(l.lent, d)
	e.expect(l.peer, 1)
	defer e.expect(l.peer, -1)
	l.dispatch(header{kind: offer, context: stamp.Context, sequence: d.number, total: len(data)}, stamp.Tag, kind, nil)
	e.settle()
	if !o.over {
		e.await(o)
	}
	if i := slices.Index(l.lent, d); i >= 0 {
		l.lent = slices.Delete(l.lent, i, i+1)
		if l.err == nil && e.err == nil {
			l.dispatch(header{kind: withdraw, sequence: d.number}, 0, "", nil)
		}
	}
	return o.err
}

// fetch has the sender send a letter that it lends, and returns when it is here.
func (m *letter) fetch(ctx context.Context, into []byte) error {
	l := m.link
	e := l.e
	m.op = e.begin(ctx, transport.Step{})
	m.op.errand = errand{mail: true, on: l, begun: true}
	defer e.leave(m.op)
	m.data = into
	l.granted = append(l.granted, m)
	e.expect(l.peer, 1)
	defer e.expect(l.peer, -1)
	l.note(header{kind: grant, sequence: m.number})
	e.settle()
	if !m.op.over {
		e.await(m.op)
	}
	return m.op.err
}

// dispatch writes a frame of a letter, behind all that is queued. What the
// stream does not take now is copied, and carried.
func (l *link) dispatch(h header, tag int, kind string, data []byte) {
	h.text = tagLen + len(kind)
	frame := l.out[:0]
	queued := l.pending()
	if queued {
		frame = make([]byte, 0, headerLen+h.text+len(data))
	}
	frame = binary.LittleEndian.AppendUint64(h.append(frame), uint64(tag))
	frame = append(frame, kind...)
	switch {
	case queued:
		l.queue = append(l.queue, outgoing{as: post, data: append(frame, data...)})
	case len(data) <= copyMax:
		l.head = append(frame, data...)
		l.flush()
	default:
		l.head, l.body = frame, data
		l.flush()
		l.body = slices.Clone(l.body)
	}
	if l.pending() && l.err == nil && l.e.err == nil {
		l.e.watchOver(l)
		l.carry()
	}
}

// note writes a frame without contents before all that is queued.
func (l *link) note(h header) {
	if l.err != nil || l.e.err != nil {
		return
	}
	l.notes = h.append(l.notes)
	l.flush()
	if l.pending() {
		l.e.watchOver(l)
	}
}

// carry sees to it that what was posted is written, also while this rank does
// something else.
func (l *link) carry() {
	if l.carrier != nil && !l.carrier.over {
		return
	}
	e := l.e
	o := e.begin(context.Background(), transport.Step{})
	o.errand = errand{mail: true, on: l}
	l.carrier = o
	e.others.Go(func() {
		e.lock()
		defer e.mu.Unlock()
		defer e.leave(o)
		e.await(o)
		if l.carrier == o {
			l.carrier = nil
		}
	})
}

// carried ends the carrier when all is written.
func (l *link) carried() {
	if l.carrier != nil && !l.pending() {
		l.carrier.finish(nil)
	}
}

// credit tells the peer now and then what was taken of its letters.
func (l *link) credit(n int) {
	if l.taken += n; l.taken >= creditStep {
		h := header{kind: taken, total: l.taken}
		l.taken = 0
		l.note(h)
	}
}

// openLetter begins with a frame that concerns a letter.
func (l *link) openLetter(h header, text []byte) error {
	switch h.kind {
	case post, offer:
		return l.openEnvelope(h, text)
	case withdraw:
		l.withdrawn(h.sequence)
	case grant:
		for i, d := range l.lent {
			if d.number == h.sequence {
				l.lent = slices.Delete(l.lent, i, i+1)
				d.op.begun, d.op.parts = true, 1
				l.queue = append(l.queue, outgoing{as: part, op: d.op, data: d.data, number: d.number})
				l.due = true
				l.e.lookAgain(l)
				break
			}
		}
	case part:
		for _, m := range l.granted {
			if m.number == h.sequence && l.rest == 0 && h.body <= m.Size-m.got {
				l.letter, l.left = m, h.body
				l.tookLetter(0)
				return nil
			}
		}
		return fmt.Errorf("%d bytes of a letter that nobody takes", h.body)
	case taken:
		l.untaken -= min(l.untaken, h.total)
	}
	return nil
}

// openEnvelope begins with a letter.
func (l *link) openEnvelope(h header, text []byte) error {
	switch {
	case len(text) < tagLen || l.rest > 0:
		return errors.New("a letter inside a message")
	case h.kind == post && (h.total > shortLetter || h.body != h.total):
		return fmt.Errorf("a short letter of %d bytes", h.total)
	}
	if string(text[tagLen:]) != l.kind {
		l.kind = string(text[tagLen:])
	}
	envelope := transport.Envelope{From: l.peer, Tag: int(binary.LittleEndian.Uint64(text)), Size: h.total, Type: l.kind}
	if h.kind == offer {
		l.e.deliver(&letter{Envelope: envelope, context: h.context, link: l, lent: true, number: h.sequence})
		return nil
	}
	m := l.e.mail.blank(h.total)
	m.Envelope, m.context, m.link = envelope, h.context, l
	l.letter, l.left = m, h.body
	l.tookLetter(0)
	return nil
}

// tookLetter notes that n bytes of the current frame are where they go.
func (l *link) tookLetter(n int) {
	m := l.letter
	m.got += n
	if l.left -= n; l.left > 0 {
		return
	}
	l.letter = nil
	switch {
	case !m.lent:
		l.e.deliver(m)
	case m.got == m.Size:
		i := slices.Index(l.granted, m)
		l.granted = slices.Delete(l.granted, i, i+1)
		m.op.finish(nil)
	}
}

// withdrawn drops a letter that the peer does not offer any more.
func (l *link) withdrawn(number uint32) {
	e := l.e
	e.mail.letters = slices.DeleteFunc(e.mail.letters, func(m *letter) bool {
		return m.lent && m.link == l && m.number == number
	})
	for i, m := range l.granted {
		if m.number == number {
			l.granted = slices.Delete(l.granted, i, i+1)
			m.op.finish(errWithdrawn)
			return
		}
	}
}

// noMail notes that the link has ended: no letter leaves any more, those that
// the peer lends are gone, and who waits for it learns so.
func (l *link) noMail() {
	e := l.e
	l.head, l.body, l.notes = nil, nil, nil
	l.queue = slices.DeleteFunc(l.queue, func(m outgoing) bool { return m.as != 0 })
	e.mail.letters = slices.DeleteFunc(e.mail.letters, func(m *letter) bool { return m.lent && m.link == l })
	for _, o := range e.ops {
		switch {
		case !o.mail:
		case o.on != l && o.on != nil:
		case o.seeks || o.connects:
			o.finish(nil) // it looks for itself
		case o.on == l:
			o.finish(l.err)
		}
	}
	l.lent, l.granted = nil, nil
}

// unposted returns the frames that wait for what is before them.
func (s *sender) unposted() (b []byte) {
	for _, m := range s.queue {
		if m.as == post && !m.begun {
			b = append(b, m.data...)
		}
	}
	return b
}
