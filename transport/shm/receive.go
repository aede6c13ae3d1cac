package shm

import (
	"fmt"
	"slices"

	"github.com/chorale-go/chorale/transport"
)

// A flow is a message of which more is to come.
type flow struct {
	number uint32 // of the frame that it began with
	recv   *recv  // where it goes: to a receive,
	keep   *message
	asked  bool // the peer has lent it, and is to bring it
}

// hear takes what the peer has sent, up to a message that nobody expects.
func (l *link) hear() {
	for len(l.aside) > 0 && l.handOver() {
	}
	for !l.blocked && l.e.err == nil {
		s, k := l.next()
		if s == nil {
			return
		}
		if k.begins() {
			if !l.open(s, k) {
				return
			}
			continue
		}
		ok := true
		switch k {
		case more:
			ok = l.goOn(s)
		case rest:
			ok = l.goOnLent(s)
		default:
			ok = l.openLetter(s, k)
		}
		if !ok {
			return
		}
	}
}

// open begins with a message if somebody expects it. Else it stays where it is,
// which holds the peer back. But it must not hold back letters, nor messages of
// other contexts: if somebody waits for those, it is put aside.
func (l *link) open(s *slot, k kind) bool {
	if !l.sane(s, k) {
		l.nonsense()
		return false
	}
	r := l.expects(s.context)
	switch {
	case r == nil:
		if o := l.e.within(s.context); o != nil && (before(s.sequence, o.sig.Sequence) || o.contradicts(s.sequence, uint32(s.call))) {
			l.differ(o, l.signature(s))
			return false
		}
	case len(l.aside) > 0 && l.firstAside(s.context) != nil: // that one is for r
	case uint32(s.call) != r.op.call || s.sequence != r.op.sig.Sequence:
		l.differ(r.op, l.signature(s))
		return false
	case s.total(k) != len(r.Into):
		l.e.fail(&transport.SizeError{Peer: l.peer, Got: s.total(k), Want: len(r.Into)})
		return false
	case k == lent && l.asksEnough():
		return false
	case !r.held:
		return l.land(r, s, k)
	}
	if l.awaits() || len(l.flows) > 0 || slices.ContainsFunc(l.posted, func(r *recv) bool { return r.op.sig.Context != s.context }) {
		return l.putAside(s, k)
	}
	l.blocked = true
	return false
}

// sane reports whether a frame that begins a message can be one.
func (l *link) sane(s *slot, k kind) bool {
	switch k {
	case data:
		return s.size <= inlineMax
	case cast:
		return s.size <= castMost && s != l.in.slot(l.head&l.mask)
	}
	return s.parcel().total <= totalMost
}

// total returns how long the whole message is that a frame begins.
func (s *slot) total(k kind) int {
	if k == data || k == cast {
		return int(s.size)
	}
	return int(s.parcel().total)
}

// land does with a message, or its beginning, what its receive says.
func (l *link) land(r *recv, s *slot, k kind) bool {
	l.unpost(r)
	switch k {
	case data:
		r.land(s.body[:s.size:s.size])
		l.take()
		r.complete()
		return true
	case cast:
		r.land(s.castBytes())
		l.takeCast()
		r.complete()
		return true
	case lent:
		return l.borrow(flow{number: l.head + 1, recv: r}, s)
	}
	f := flow{number: l.head + 1, recv: r}
	if !l.unpack(f, s) {
		return false
	}
	if r.got < len(r.Into) {
		l.flows = append(l.flows, f)
	} else {
		r.complete()
	}
	return true
}

// land does what the receive says with a whole message.
func (r *recv) land(p []byte) {
	if r.Combine == nil {
		copy(r.Into, p)
	} else {
		r.combine(0, p)
	}
}

// unpost notes that the message for a receive has come.
func (l *link) unpost(r *recv) {
	if l.posted[0] == r {
		n := copy(l.posted, l.posted[1:])
		l.posted[n] = nil
		l.posted = l.posted[:n]
		return
	}
	i := slices.Index(l.posted, r)
	l.posted = slices.Delete(l.posted, i, i+1)
}

// unpack takes the bytes of a message out of a box.
func (l *link) unpack(f flow, s *slot) bool {
	p, e := s.parcel(), l.e
	if int(p.box) >= e.seg.boxes || int(s.size) > e.seg.boxLen || !f.fits(int(p.offset), int(s.size)) {
		l.nonsense()
		return false
	}
	b := e.seg.box(l.peer, int(p.box))
	f.put(int(p.offset), b[:s.size:s.size])
	l.take()
	return true
}

// fits reports whether the bytes at an offset are the next ones.
func (f flow) fits(offset, n int) bool {
	if f.recv != nil {
		return offset == f.recv.got && n <= len(f.recv.Into)-offset
	}
	return offset == f.keep.got && n <= len(f.keep.data)-offset
}

// put takes the next bytes to where they go.
func (f flow) put(offset int, p []byte) {
	if f.recv == nil {
		f.keep.got += copy(f.keep.data[offset:], p)
		return
	}
	f.recv.put(offset, p)
}

// put copies or combines the next bytes of a message.
func (r *recv) put(offset int, p []byte) {
	r.got += len(p)
	if r.Combine == nil {
		copy(r.Into[offset:], p)
		return
	}
	unit := max(r.Elem, 1)
	if n := len(r.part); n > 0 {
		n = min(unit-n, len(p))
		r.part = append(r.part, p[:n]...)
		offset, p = offset+n, p[n:]
		if len(r.part) < unit && r.got < len(r.Into) {
			return
		}
		r.combine(offset-len(r.part), r.part)
		r.part = r.part[:0]
	}
	if n := len(p) % unit; n > 0 && r.got < len(r.Into) { // an element goes on in the next piece
		if r.part == nil {
			r.part = make([]byte, 0, unit)
		}
		r.part = append(r.part, p[len(p)-n:]...)
		p = p[:len(p)-n]
	}
	r.combine(offset, p)
}

// combine combines whole elements.
func (r *recv) combine(offset int, p []byte) {
	if end := offset + len(p); len(p) > 0 {
		r.Combine(r.Into[offset:end:end], r.Held[offset:end:end], p)
	}
}

// ended reports whether all of the message is here, and sees to whoever waits.
func (f flow) ended() bool {
	if f.recv != nil {
		if f.recv.got == len(f.recv.Into) {
			f.recv.complete()
			return true
		}
		return false
	}
	f.keep.whole = f.keep.got == len(f.keep.data)
	return f.keep.whole
}

// find returns the flow that a frame continues.
func (l *link) find(number uint32) int {
	for i := range l.flows {
		if l.flows[i].number == number {
			return i
		}
	}
	return -1
}

// goOn continues a message out of a box.
func (l *link) goOn(s *slot) bool {
	i := l.find(s.parcel().number)
	if i < 0 {
		l.nonsense()
		return false
	}
	f := l.flows[i]
	if !l.unpack(f, s) {
		return false
	}
	l.arrived(i)
	return true
}

// arrived drops a flow of which all is here.
func (l *link) arrived(i int) {
	if l.flows[i].ended() {
		l.flows = slices.Delete(l.flows, i, i+1)
	}
}

// goOnLent continues a message out of the peer's memory.
func (l *link) goOnLent(s *slot) bool {
	i := l.find(s.parcel().number)
	if i < 0 {
		l.nonsense()
		return false
	}
	if l.asksEnough() {
		return false
	}
	f := l.flows[i]
	l.flows = slices.Delete(l.flows, i, i+1)
	return l.borrow(f, s)
}

// asksEnough reports whether the peer is to bring so many messages that there is
// no place for the number of another.
func (l *link) asksEnough() bool {
	n := 0
	for i := range l.flows {
		if l.flows[i].asked {
			n++
		}
	}
	return n == wantsMost
}

// borrow reads what the peer lends, where it can; else it asks for it.
func (l *link) borrow(f flow, s *slot) bool {
	p := s.parcel()
	got := f.got()
	if l.reaches() {
		l.read(f, uintptr(p.address))
		switch {
		case f.got() == got:
			l.reach = beyond
		case l.seat.stage() != joined: // it may have had its memory back before that was read
			l.part()
			l.e.fail(l.err)
			return false
		case f.got() < int(p.total) || l.isEmpty():
			l.end(&transport.PeerError{Peer: l.peer, Err: transport.ErrLost, Reason: "its process has ended"})
			l.e.fail(l.err)
			return false
		default:
			l.take()
			l.flows = append(l.flows, f)
			l.arrived(len(l.flows) - 1)
			return true
		}
	}
	f.asked = true
	l.flows = append(l.flows, f)
	l.in.want[l.asks%wantsMost].Store(l.head + 1)
	l.asks++
	l.in.wants.Store(l.asks)
	l.take()
	return true
}

// read reads a message out of the peer's memory, in pieces that stay in cache
// where they are to be combined.
func (l *link) read(f flow, address uintptr) {
	pid := int(l.seat.pid.Load())
	if r := f.recv; r != nil && r.Combine != nil {
		unit := max(r.Elem, 1)
		for r.got < len(r.Into) {
			n := min(max(bulkLen/unit, 1)*unit, len(r.Into)-r.got)
			b := l.e.bulkOf(n)
			if readPeer(pid, b, address+uintptr(r.got)) != nil {
				return
			}
			f.put(r.got, b)
		}
		return
	}
	into, got := f.room()
	if readPeer(pid, into[*got:], address+uintptr(*got)) == nil {
		*got = len(into)
	}
}

// got returns how many bytes of the message are here.
func (f flow) got() int {
	_, got := f.room()
	return *got
}

// room returns where plain bytes go, and how many are there.
func (f flow) room() (into []byte, got *int) {
	if f.recv != nil {
		return f.recv.Into, &f.recv.got
	}
	return f.keep.data, &f.keep.got
}

// bulkLen is how much is read at a time of what is combined.
const bulkLen = 128 << 10

func (e *Endpoint) bulkOf(n int) []byte {
	if cap(e.bulk) < n {
		e.bulk = make([]byte, max(n, bulkLen))
	}
	return e.bulk[:n]
}

// nonsense ends the link because what the peer has written makes no sense, and
// this endpoint's part with it: who waits for what comes after that would wait for
// ever.
func (l *link) nonsense() {
	l.end(&transport.PeerError{Peer: l.peer, Err: transport.ErrLost, Reason: fmt.Sprintf("its lane to rank %d carries what no rank writes", l.e.cfg.Rank)})
	l.e.fail(l.err)
}
