package shm

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/mailbox"
)

// A postman is the part of a link that carries letters.
//
// A short letter travels whole, in a slot or a box; where there is no room, a
// copy waits until there is. A long one is offered; its contents follow in boxes
// when the receiver grants that. So letters are taken out of the lane at once,
// and hold up nothing. Nor is one held up for long by who has all boxes, and may
// wait for that letter: the copy is offered then.
type postman struct {
	waits    int // operations that wait for letters, or for word of them
	account  mailbox.Account
	offers   uint32      // letters that this rank has offered
	offered  []*offering // to the peer, and not granted
	carried  []*offering // granted by the peer, and on their way
	copies   int         // of both, those that nobody waits for
	kind     string      // the type of the last letter
	notes    []note      // frames without contents that wait for room
	unposted []envelope  // frames of letters that do
}

// An offering is a letter that this rank has offered.
type offering struct {
	number uint32
	data   []byte
	sent   int
	op     *op // nil if data is a copy, and nobody waits for it
}

// A note is a frame without contents.
type note struct {
	as     kind
	number uint32
	total  int
}

// An envelope is a letter's frame, or the offer of one.
type envelope struct {
	as     kind // post or offer
	stamp  transport.Match
	kind   string
	number uint32
	total  int
	data   []byte // a copy, of one that waits for room
	stuck  time.Time
}

// typeMost is how long the text of a type may be: a box takes it.
const typeMost = boxMin / 2

// shortLetter is how long a letter with its type may be that is copied when it is
// posted.
func (e *Endpoint) shortLetter() int { return min(mailbox.ShortMost, e.seg.boxLen) }

// dispatch writes a frame of a letter behind those that wait, or has a copy of it
// wait with them.
func (l *link) dispatch(v envelope, data []byte) {
	if len(l.unposted) == 0 && l.writeEnvelope(&v, data) {
		return
	}
	v.data = slices.Clone(data)
	l.unposted = append(l.unposted, v)
	l.e.unposted = true
	l.e.carry()
}

// writeEnvelope writes the frame if there is room. Its contents are the type and
// the data; those of an offer, which are the type alone, come behind the letter's
// length and number.
func (l *link) writeEnvelope(v *envelope, data []byte) bool {
	if !l.room() {
		return false
	}
	s := l.blank()
	n := len(v.kind) + len(data)
	from := 0
	if v.as != post {
		from = 16
	}
	k, b := v.as, noBox
	if n > inlineMax-from {
		if b = l.e.freeBox(false); b == noBox {
			return false
		}
		k++ // in a box
	}
	s.size, s.sequence = uint32(n), uint32(len(v.kind))
	s.context, s.call = v.stamp.Context, uint64(v.stamp.Tag)
	into := s.body[from:]
	if b != noBox {
		l.e.fill(b, nil)
		into = l.e.seg.box(l.e.cfg.Rank, b)
		*s.parcel() = parcel{box: uint32(b)}
	}
	if v.as != post {
		s.parcel().total, s.parcel().offset = uint64(v.total), uint64(v.number)
	}
	copy(into[copy(into, v.kind):], data)
	l.write(s, k)
	if b != noBox {
		l.e.filled(b, l)
	}
	return true
}

// note writes a frame without contents, or has it wait for room.
func (l *link) note(n note) {
	if l.err != nil || l.e.err != nil {
		return
	}
	if len(l.notes) > 0 || !l.writeNote(n) {
		l.notes = append(l.notes, n)
		l.e.unposted = true
		l.e.carry()
	}
}

func (l *link) writeNote(n note) bool {
	if !l.room() {
		return false
	}
	s := l.blank()
	s.size = 0
	*s.parcel() = parcel{number: n.number, total: uint64(n.total)}
	l.write(s, n.as)
	return true
}

// postRest writes what there is room for of all that waits for it.
func (e *Endpoint) postRest() {
	e.unposted = false
	for i := range e.links {
		if l := &e.links[i]; l.postRest() {
			e.unposted = true
		}
	}
	if e.unposted {
		return
	}
	for _, o := range e.ops {
		if o.carries {
			o.finish(nil)
		}
	}
}

// postRest does that for one link, and reports whether something is left.
func (l *link) postRest() bool {
	for len(l.notes) > 0 && l.writeNote(l.notes[0]) {
		l.notes = slices.Delete(l.notes, 0, 1)
		l.e.moved = true
	}
	for len(l.unposted) > 0 {
		if v := &l.unposted[0]; !l.writeEnvelope(v, v.data) && !l.offerCopy(v) {
			break
		}
		l.unposted = slices.Delete(l.unposted, 0, 1)
		l.e.moved = true
	}
	for len(l.carried) > 0 && l.writePart(l.carried[0]) {
		if d := l.carried[0]; d.sent == len(d.data) {
			l.carried = slices.Delete(l.carried, 0, 1)
			if d.op != nil {
				d.op.finish(nil)
			} else {
				l.copies--
				l.e.expect(l.peer, -1)
			}
		}
		l.e.moved = true
	}
	return len(l.notes)+len(l.unposted)+len(l.carried)+l.copies > 0
}

// offerCopy offers a short letter that has waited for a box for long.
func (l *link) offerCopy(v *envelope) bool {
	if v.as != post || len(v.kind) > inlineMax-16 || !l.room() {
		return false
	}
	if now := time.Now(); v.stuck.IsZero() {
		v.stuck = now
		return false
	} else if now.Sub(v.stuck) < togetherTime {
		return false
	}
	l.offers++
	l.writeEnvelope(&envelope{as: offer, stamp: v.stamp, kind: v.kind, number: l.offers, total: len(v.data)}, nil)
	l.offered = append(l.offered, &offering{number: l.offers, data: v.data})
	l.copies++
	l.account.Refund(len(v.data))
	l.e.expect(l.peer, 1)
	return true
}

// writePart writes the next bytes of a letter that the peer has granted.
func (l *link) writePart(d *offering) bool {
	if !l.room() {
		return false
	}
	b := l.e.freeBox(true)
	if b == noBox {
		return false
	}
	s := l.blank()
	n := l.e.fill(b, d.data[d.sent:])
	s.size = uint32(n)
	*s.parcel() = parcel{number: d.number, offset: uint64(d.sent), box: uint32(b)}
	d.sent += n
	l.write(s, part)
	l.e.filled(b, l)
	return true
}

// carry sees to it that what was posted is written, also while this rank does
// something else.
func (e *Endpoint) carry() {
	if slices.ContainsFunc(e.ops, func(o *op) bool { return o.carries && !o.over }) {
		return
	}
	o := e.begin(context.Background())
	o.errand = errand{mail: true, carries: true}
	e.others.Go(func() {
		e.lock()
		defer e.unlock()
		defer e.leave(o)
		e.await(o)
	})
}

// flushMail waits until all that was posted is written, or nobody has taken it
// for long.
func (e *Endpoint) flushMail() {
	if !e.unposted || e.err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	o := e.begin(ctx)
	o.errand = errand{mail: true, carries: true}
	defer e.leave(o)
	e.await(o)
}

// closeTimeout bounds how long an endpoint waits, when it ends, for peers that do
// not take the letters that it has posted.
const closeTimeout = time.Second

// lend offers a letter and returns when the peer has taken it.
func (l *link) lend(ctx context.Context, stamp transport.Match, kind string, data []byte) error {
	e := l.e
	l.offers++
	o := e.begin(ctx)
	o.errand = errand{mail: true, on: l}
	defer e.leave(o)
	d := &offering{number: l.offers, data: data, op: o}
	l.offered = append(l.offered, d)
	e.expect(l.peer, 1)
	defer e.expect(l.peer, -1)
	l.dispatch(envelope{as: offer, stamp: stamp, kind: kind, number: d.number, total: len(data)}, nil)
	e.await(o)
	same := func(other *offering) bool { return other == d }
	if slices.ContainsFunc(l.offered, same) {
		l.offered = slices.DeleteFunc(l.offered, same)
		if l.err == nil && e.err == nil {
			l.dispatch(envelope{as: withdraw, number: d.number}, nil)
		}
	}
	l.carried = slices.DeleteFunc(l.carried, same)
	return o.err
}

// Fetch implements [mailbox.Link].
func (l *link) Fetch(ctx context.Context, m *mailbox.Letter) error {
	e := l.e
	o := e.begin(ctx)
	o.errand = errand{mail: true, on: l, begun: true}
	defer e.leave(o)
	m.Done = o.finish
	e.expect(l.peer, 1)
	defer e.expect(l.peer, -1)
	l.note(note{as: grant, number: m.Number})
	e.await(o)
	return o.err
}

// Credit implements [mailbox.Link].
func (l *link) Credit(cost int) {
	if due := l.account.Owe(cost); due > 0 {
		l.note(note{as: taken, total: due})
	}
}

// openLetter takes a frame that concerns a letter. It returns false if it makes
// no sense.
func (l *link) openLetter(s *slot, k kind) bool {
	p := s.parcel()
	if (k == offer || k == offerBoxed || k == taken) && p.total > totalMost {
		l.nonsense()
		return false
	}
	switch k {
	case post, postBoxed, offer, offerBoxed:
		return l.openEnvelope(s, k)
	case withdraw:
		l.e.mail.Withdraw(l.peer, uint32(p.offset))
	case grant:
		i := slices.IndexFunc(l.offered, func(d *offering) bool { return d.number == p.number })
		if i >= 0 {
			d := l.offered[i]
			l.offered = slices.Delete(l.offered, i, i+1)
			if d.op != nil {
				d.op.begun = true
			}
			l.carried = append(l.carried, d)
			l.e.unposted = true
		}
	case part:
		return l.openPart(s)
	case taken:
		l.account.Repay(int(p.total))
	default:
		l.nonsense()
		return false
	}
	l.take()
	return true
}

// openPart takes contents of a letter that was granted.
func (l *link) openPart(s *slot) bool {
	p := s.parcel()
	m := l.e.mail.Awaited(l.peer, p.number)
	if m == nil || int(p.offset) != m.Got || int(p.box) >= l.e.seg.boxes ||
		int(s.size) > min(l.e.seg.boxLen, m.Size-m.Got) {
		l.nonsense()
		return false
	}
	m.Got += copy(m.Data[m.Got:], l.e.seg.box(l.peer, int(p.box))[:s.size])
	l.take()
	if m.Got == m.Size {
		m.Done(nil)
	}
	return true
}

// openEnvelope takes a letter, or the offer of one.
func (l *link) openEnvelope(s *slot, k kind) bool {
	p := s.parcel()
	b := s.body[:]
	if k == offer {
		b = b[16:]
	}
	if k == postBoxed || k == offerBoxed {
		if int(p.box) >= l.e.seg.boxes {
			l.nonsense()
			return false
		}
		b = l.e.seg.box(l.peer, int(p.box))
	}
	n, text := int(s.size), int(s.sequence)
	if n > len(b) || text > n {
		l.nonsense()
		return false
	}
	if string(b[:text]) != l.kind {
		l.kind = strings.Clone(string(b[:text]))
	}
	v := transport.MessageInfo{From: l.peer, Tag: int(s.call), Size: n - text, Type: l.kind}
	if k == offer || k == offerBoxed {
		v.Size = int(p.total)
		if l.err == nil {
			l.e.mail.Deliver(&mailbox.Letter{MessageInfo: v, Context: s.context, Link: l, Lent: true, Number: uint32(p.offset)})
		}
		l.take()
		return true
	}
	m := l.e.mail.Blank(v.Size)
	m.MessageInfo, m.Context, m.Link = v, s.context, l
	copy(m.Data, b[text:n])
	l.take()
	l.e.mail.Deliver(m)
	return true
}

// noMail notes that the peer has gone: letters that it lends are gone too, and
// who waits for it learns so.
func (l *link) noMail() {
	e := l.e
	l.notes, l.unposted, l.carried = nil, nil, nil
	e.mail.Lose(l.peer)
	for _, o := range e.ops {
		switch {
		case !o.mail || o.carries:
		case o.on != l && o.on != nil:
		case o.seeks:
			o.finish(nil) // it looks for itself
		case o.on == l:
			o.finish(l.err)
		}
	}
	l.offered = nil
	if l.copies > 0 {
		e.expect(l.peer, -l.copies)
		l.copies = 0
	}
}
