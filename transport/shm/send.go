package shm

import (
	"time"
	"unsafe"

	"github.com/chorale-go/chorale/transport"
)

// burst is how many boxes of one message are filled before this rank looks
// again at what has come: two ranks that swap large messages take turns in
// filling and reading, and what they read is still in cache.
const burst = 2

// A label is what a frame that begins a message says of its call.
type label struct{ context, sequence, call uint32 }

func (o *op) label() label { return label{o.sig.Context, o.sig.Sequence, o.call} }

// label writes it, and how many casts went before the frame.
func (s *slot) label(v label, casts uint64) {
	s.context, s.sequence, s.call = v.context, v.sequence, casts<<32|uint64(v.call)
}

// line writes a message that fits into a slot.
func (l *link) line(v label, p []byte) {
	s := l.blank()
	s.size = uint32(len(p))
	s.label(v, l.e.caster.tail)
	copy(s.body[:], p)
	l.write(s, data)
}

// holds reports whether a message to the peer waits, which no later one overtakes.
func holds(sends []sending, l *link) bool {
	for i := range sends {
		if sends[i].link == l {
			return true
		}
	}
	return false
}

// list lists the messages of a Send. They go together, as long as that goes:
// their boxes are filled once for all.
func (o *op) list(s *transport.Send) {
	first := len(o.sends)
	together := len(s.To) > 1
	for _, to := range s.To {
		l := &o.e.links[to]
		together = together && !holds(o.sends[first:], l)
		o.sends = append(o.sends, sending{link: l, data: s.Data})
		o.e.watchOver(l)
		if l.err != nil {
			o.e.partings = true
		}
	}
	if together {
		o.sends[first].group = len(s.To)
	}
}

// boxed writes the frame of a message's next bytes, which are in a box.
func (m *sending) boxed(v label, b, n int) {
	l := m.link
	s := l.blank()
	k := more
	if !m.begun {
		k = boxed
		m.begun, m.first = true, l.tail+1
		s.label(v, l.e.caster.tail)
	}
	s.size = uint32(n)
	*s.parcel() = parcel{total: uint64(len(m.data)), offset: uint64(m.sent), box: uint32(b), number: m.first}
	m.sent += n
	l.write(s, k)
	l.e.filled(b, l)
}

// lend writes the frame that offers what is left of a message.
func (m *sending) lend(o *op) {
	l := m.link
	s := l.blank()
	k := rest
	if !m.begun {
		k = lent
		m.begun, m.first = true, l.tail+1
		s.label(o.label(), o.e.caster.tail)
	}
	s.size = 0
	*s.parcel() = parcel{
		total: uint64(len(m.data)), offset: uint64(m.sent), number: m.first,
		address: uint64(uintptr(unsafe.Pointer(unsafe.SliceData(m.data)))),
	}
	l.write(s, k)
	l.loans++
	o.e.lender.note(m.data[m.sent:])
	o.loans = append(o.loans, loan{sending: *m, number: l.tail})
}

// send sends what there is room for.
func (o *op) send() {
	if len(o.sends) > 0 {
		kept := o.sends[:0]
		for i := 0; i < len(o.sends); {
			n := max(o.sends[i].group, 1)
			run := o.sends[i : i+n]
			i += n
			if overtakes(run, kept) || !o.advance(run) {
				kept = append(kept, run...)
			}
		}
		clear(o.sends[len(kept):])
		o.sends = kept
	}
	if len(o.loans) > 0 {
		kept := o.loans[:0]
		for i := range o.loans {
			d := &o.loans[i]
			if d.repaid(o) {
				d.link.loans--
			} else {
				kept = append(kept, *d)
			}
		}
		clear(o.loans[len(kept):])
		o.loans = kept
	}
	o.complete()
}

// overtakes reports whether a message to one of the same ranks waits.
func overtakes(run, kept []sending) bool {
	for i := range run {
		if len(kept) > 0 && holds(kept, run[i].link) {
			return true
		}
	}
	return false
}

// advance writes what there is room for of a message, or of several that go
// together, and reports whether that is all of it. Where others have all the
// boxes, and may keep them, a message is lent.
func (o *op) advance(run []sending) bool {
	m := &run[0]
	for n := 0; ; n++ {
		b := noBox
		if hasRoom(run) {
			switch {
			case m.sent == 0 && len(m.data) <= inlineMax:
				m.link.line(o.label(), m.data)
				o.e.moved = true
				return true
			case n == burst && !o.e.crowded:
				return false
			}
			b = o.e.freeBox(false)
			if isLong(run) || b == noBox && len(run) == 1 && m.link.took(m.link.tail) && m.link.loans < wantsMost {
				for i := range run {
					run[i].lend(o)
				}
				o.e.moved = true
				return true
			}
		}
		if b == noBox {
			if m.group > 1 && m.waited() {
				m.group = 0 // each for itself
			}
			return false
		}
		filled := o.e.fill(b, m.piece())
		for i := range run {
			run[i].boxed(o.label(), b, filled)
		}
		o.e.moved = true
		m.stuck = time.Time{}
		if m.sent == len(m.data) {
			return true
		}
	}
}

// From where on a message is lent, to be copied once, by the kernel, instead of
// twice; and one that goes to several ranks, which is in boxes once for all.
//
// Measured in November 2026 on two cores, by chorale bench -n 2,4 --transport shm,
// in µs, boxes and loans: allgather of 64 KiB by two ranks 10 and 6.2, scatter by
// four 13 and 15. What the sender has just written is in its cache, from where
// boxes bring it faster: bcast of 64 KiB 5.5 and 10.8. But where the system has put
// the cores far from each other, boxes take three to four times as long, and loans
// of what has been read before as long as ever: scatter of 64 KiB by two ranks 22
// and 6.5, by four 40 and 13, alltoall of 1 MiB by four 2450 and 370.
const (
	lendMin  = 64 << 10
	lendMany = 128 << 10
)

// isLong reports whether a message that has not begun is better lent to all of its
// receivers, and they can read this process's memory as this one can read theirs.
func isLong(run []sending) bool {
	least := lendMin
	if len(run) > 1 {
		least = lendMany
	}
	if run[0].begun || len(run[0].data) < least {
		return false
	}
	for i := range run {
		if l := run[i].link; l.loans >= wantsMost || l.seat.stage() != joined || !l.reaches() {
			return false
		}
	}
	return true
}

// pieceLen is how much of a message goes into a box where every rank has a core:
// the receiver reads one while the next is filled, and all on their way stay in
// the first cache. Two ranks broadcast 32 KiB in 2.9 µs so, and in 4.9 by whole
// boxes. Where ranks share cores, one fills what it can while it has the core.
const pieceLen = 2 << 10

// piece returns the message's bytes for the next box.
func (m *sending) piece() []byte {
	rest := m.data[m.sent:]
	if !m.link.e.crowded {
		rest = rest[:min(len(rest), pieceLen)]
	}
	return rest
}

// window is how many boxes of a message its receiver is behind at most, so that
// they are still in cache when it reads them.
const window = 8

// hasRoom reports whether another frame can be written to each of the receivers.
func hasRoom(run []sending) bool {
	for i := range run {
		l := run[i].link
		if !l.room() || run[i].begun && l.tail-l.free >= window && l.tail-l.out.taken.Load() >= window {
			return false
		}
	}
	return true
}

// togetherTime is how long messages go together although one of the receivers
// does not read. It may be waiting for what another would do next.
const togetherTime = 5 * time.Millisecond

// waited reports whether the message has been stuck for long.
func (m *sending) waited() bool {
	now := time.Now()
	if m.stuck.IsZero() {
		m.stuck = now
	}
	return now.Sub(m.stuck) > togetherTime
}

// repaid reports whether a loan is over: its receiver has read it, or has asked
// for it and all of it is in boxes.
func (d *loan) repaid(o *op) bool {
	l := d.link
	if !d.asked {
		if !l.took(d.number) {
			return false
		}
		o.e.moved = true
		if !l.asksFor(d.number) {
			return true
		}
		d.asked = true
	}
	for d.sent < len(d.data) {
		b := noBox
		if l.room() {
			b = o.e.freeBox(true)
		}
		if b == noBox {
			return false
		}
		o.e.moved = true
		d.boxed(o.label(), b, o.e.fill(b, d.data[d.sent:]))
	}
	return true
}

// asksFor reports whether the receiver, which has taken a frame that offers
// something, wants it brought.
func (l *link) asksFor(number uint32) bool {
	n := l.out.wants.Load()
	if n-l.held > wantsMost {
		l.nonsense()
		return false
	}
	for ; l.held != n; l.held++ {
		l.asked = append(l.asked, l.out.want[l.held%wantsMost].Load())
	}
	for i, n := range l.asked {
		if n == number {
			l.asked = append(l.asked[:i], l.asked[i+1:]...)
			return true
		}
	}
	return false
}
