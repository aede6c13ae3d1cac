package tcp

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/mailbox"
)

// A postman is the part of a link that carries letters.
//
// A short letter travels whole. A long one is offered; its contents follow when
// the receiver grants that, into the memory where they are to be. So letters
// are always read at once, and hold up nothing.
type postman struct {
	waits   int // operations that wait for letters, or for word of them
	account mailbox.Account
	offers  uint32          // letters that this rank has offered
	lent    []*loan         // offered to the peer, and not granted
	letter  *mailbox.Letter // where the bytes of the current frame go
	kind    string          // the type of the last letter
	due     bool            // a letter was granted to this rank, and is to be written
	carrier *op             // sees to it that what was posted is written
}

// A loan is a letter that this rank has offered.
type loan struct {
	number uint32
	data   []byte
	op     *op
}

const tagLen = 8 // bytes of a tag before a type

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
		return keeper{e}.Ended()
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
func (l *link) lend(ctx context.Context, stamp transport.Match, kind string, data []byte) error {
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

// Fetch implements [mailbox.Link].
func (l *link) Fetch(ctx context.Context, m *mailbox.Letter) error {
	e := l.e
	o := e.begin(ctx, transport.Step{})
	o.errand = errand{mail: true, on: l, begun: true}
	defer e.leave(o)
	m.Done = o.finish
	e.expect(l.peer, 1)
	defer e.expect(l.peer, -1)
	l.note(header{kind: grant, sequence: m.Number})
	e.settle()
	if !o.over {
		e.await(o)
	}
	return o.err
}

// Credit implements [mailbox.Link].
func (l *link) Credit(cost int) {
	if due := l.account.Owe(cost); due > 0 {
		l.note(header{kind: taken, total: due})
	}
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

// openLetter begins with a frame that concerns a letter.
func (l *link) openLetter(h header, text []byte) error {
	switch h.kind {
	case post, offer:
		return l.openEnvelope(h, text)
	case withdraw:
		l.e.mail.Withdraw(l.peer, h.sequence)
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
		m := l.e.mail.Awaited(l.peer, h.sequence)
		if m == nil || l.rest > 0 || h.body > m.Size-m.Got {
			return fmt.Errorf("%d bytes of a letter that nobody takes", h.body)
		}
		l.letter, l.left = m, h.body
		l.tookLetter(0)
	case taken:
		l.account.Repay(h.total)
	}
	return nil
}

// openEnvelope begins with a letter.
func (l *link) openEnvelope(h header, text []byte) error {
	switch {
	case len(text) < tagLen || l.rest > 0:
		return errors.New("a letter inside a message")
	case h.kind == post && (h.total > mailbox.ShortMost || h.body != h.total):
		return fmt.Errorf("a short letter of %d bytes", h.total)
	}
	if string(text[tagLen:]) != l.kind {
		l.kind = string(text[tagLen:])
	}
	envelope := transport.MessageInfo{From: l.peer, Tag: int(binary.LittleEndian.Uint64(text)), Size: h.total, Type: l.kind}
	if h.kind == offer {
		l.e.mail.Deliver(&mailbox.Letter{MessageInfo: envelope, Context: h.context, Link: l, Lent: true, Number: h.sequence})
		return nil
	}
	m := l.e.mail.Blank(h.total)
	m.MessageInfo, m.Context, m.Link = envelope, h.context, l
	l.letter, l.left = m, h.body
	l.tookLetter(0)
	return nil
}

// tookLetter notes that n bytes of the current frame are where they go.
func (l *link) tookLetter(n int) {
	m := l.letter
	m.Got += n
	if l.left -= n; l.left > 0 {
		return
	}
	l.letter = nil
	switch {
	case !m.Lent:
		l.e.mail.Deliver(m)
	case m.Got == m.Size:
		m.Done(nil)
	}
}

// noMail notes that the link has ended: no letter leaves any more, those that
// the peer lends are gone, and who waits for it learns so.
func (l *link) noMail() {
	e := l.e
	l.head, l.body, l.notes = nil, nil, nil
	l.queue = slices.DeleteFunc(l.queue, func(m outgoing) bool { return m.as != 0 })
	e.mail.Lose(l.peer)
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
	l.lent = nil
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
