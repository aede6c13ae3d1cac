package tcp

import (
	"slices"
	"unsafe"
)

const (
	inLen   = 32 << 10  // bytes of a link's buffer: holds every header with its text
	bulkLen = 256 << 10 // bytes of the endpoint's buffer, where those of large messages lie while they are combined
)

// A receiver is the half of a link that reads.
type receiver struct {
	posted []*recv    // receives that are not complete, in order
	aside  []*message // messages that were put aside, in order
	in     []byte     // what is read, but not looked at, is in[lo:hi]
	lo, hi int

	// The message that is landing: where, and how much is to come in this
	// frame and in later ones.
	to         *recv
	keep       *message
	context    uint32
	left, rest int
	split      []byte // the beginning of an element that came in parts

	blocked bool // the message at in[lo] waits until somebody expects it
	heard   bool // something has come since this was last looked at
	fresh   bool // something has come since this rank last sent
	drops   bool // messages that nobody expects are thrown away
}

func (l *link) makeBuffers() {
	l.in = make([]byte, inLen)
	l.out = make([]byte, 0, outMax+copyMax)
}

// reads reports whether somebody waits for what the peer has to say.
func (l *link) reads() bool {
	return l.phase == up && l.err == nil && l.e.err == nil && !l.blocked &&
		(len(l.posted) > 0 || len(l.queue) > 0 || l.awaits() || l.e.listens || l.drops)
}

// listen takes what the peer has sent, up to a message that nobody expects.
func (l *link) listen() {
	listens := l.e.listens
	l.e.listens = true
	l.receive()
	l.e.listens = listens
}

// receive takes what the peer has sent, as far as somebody waits for it.
func (l *link) receive() {
	for l.reads() {
		p, direct := l.space()
		n, err := l.stream.read(p)
		switch {
		case err == errAgain:
			return
		case err != nil:
			l.gone(err)
			return
		}
		l.e.moved++
		l.heard, l.fresh = true, true
		switch {
		case !direct:
			l.hi += n
		case l.letter != nil:
			l.tookLetter(n)
		case l.to != nil && l.to.Combine == nil:
			l.to.got += n
			l.took(n)
		default:
			l.take(p[:n])
		}
		l.parse()
		if n < len(p) && !l.drops {
			return // the stream was empty then
		}
	}
}

// space returns where to read to: if it is direct, into the memory where the
// bytes of the current frame go or are combined from, else into the link's
// buffer, which may hold the beginning of a header.
func (l *link) space() (p []byte, direct bool) {
	if l.left >= 4<<10 && l.lo == l.hi {
		switch r := l.to; {
		case l.letter != nil:
			return l.letter.Data[l.letter.Got:][:l.left], true
		case r == nil:
			return l.e.room(0, l.left), true
		case r.Combine == nil:
			return r.Into[r.got : r.got+l.left], true
		default:
			return l.e.room(r.got+len(l.split), l.left), true
		}
	}
	l.hi = copy(l.in, l.in[l.lo:l.hi])
	l.lo = 0
	return l.in[l.hi:], false
}

// room returns at most n bytes of the endpoint's buffer for what lies at an
// offset of a message. Elements are aligned there as they are in the message.
func (e *Endpoint) room(offset, n int) []byte {
	if e.bulk == nil {
		e.bulk = make([]byte, bulkLen)
	}
	b := e.bulk[offset%64:]
	return b[:min(len(b), n)]
}

// parse looks at what has been read.
func (l *link) parse() {
	for l.err == nil && l.e.err == nil {
		b := l.in[l.lo:l.hi]
		if l.left > 0 {
			if len(b) == 0 {
				return
			}
			b = b[:min(len(b), l.left)]
			l.lo += len(b)
			l.take(b)
			continue
		}
		if len(b) < headerLen {
			return
		}
		h, err := parseHeader(b)
		if err != nil {
			l.nonsense(err)
			return
		}
		if len(b) < headerLen+h.text || !l.open(h, b[headerLen:headerLen+h.text]) {
			return
		}
		l.lo += headerLen + h.text
	}
}

func (l *link) begin(h header) {
	l.context, l.left, l.rest = h.context, h.body, h.total-h.body
	l.took(0)
}

// take takes bytes of the current frame to where they go.
func (l *link) take(p []byte) {
	switch {
	case l.letter != nil:
		copy(l.letter.Data[l.letter.Got:], p)
		l.tookLetter(len(p))
		return
	case l.to != nil && l.to.Combine == nil:
		l.to.got += copy(l.to.Into[l.to.got:], p)
	case l.to != nil:
		l.combine(l.to, p)
	case l.keep != nil:
		l.keep.data = append(l.keep.data, p...)
	}
	l.took(len(p))
}

// took notes that n bytes of the current frame are where they go.
func (l *link) took(n int) {
	if l.left -= n; l.left > 0 || l.rest > 0 {
		return
	}
	if r := l.to; r != nil {
		if len(l.split) > 0 { // Into is no multiple of Elem
			r.combine(l.split)
			l.split = l.split[:0]
		}
		l.to = nil
		l.landed(r)
	}
	if l.keep != nil {
		l.keep.whole = true
		l.keep = nil
		l.e.lookAgain(l)
	}
}

func (l *link) landed(r *recv) {
	i := slices.Index(l.posted, r)
	l.posted = slices.Delete(l.posted, i, i+1)
	r.complete(l.e)
}

// combine combines the whole elements of p, and keeps the beginning of one that
// goes on later.
func (l *link) combine(r *recv, p []byte) {
	elem := max(r.Elem, 1)
	if len(l.split) > 0 {
		n := min(elem-len(l.split), len(p))
		l.split, p = append(l.split, p[:n]...), p[n:]
		if len(l.split) < elem {
			return
		}
		r.combine(l.split)
		l.split = l.split[:0]
	}
	whole := len(p) - len(p)%elem
	if whole > 0 {
		q := p[:whole]
		if uintptr(unsafe.Pointer(&q[0]))%8 != uintptr(r.got)%8 {
			q = l.e.room(r.got, whole)
			copy(q, p)
		}
		r.combine(q)
	}
	l.split = append(l.split, p[whole:]...)
}

func (r *recv) combine(p []byte) {
	n := r.got + len(p)
	r.Combine(r.Into[r.got:n:n], r.Held[r.got:n:n], p)
	r.got = n
}
