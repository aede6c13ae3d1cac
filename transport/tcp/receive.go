package tcp

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/chorale-go/chorale/transport"
)

const (
	inLen   = 32 << 10  // bytes of a link's buffer: holds every header with its text
	bulkLen = 256 << 10 // bytes of the endpoint's buffer, where those of large messages lie while they are combined
)

// A receiver is the half of a link that reads.
type receiver struct {
	posted []*recv    // receives that are not complete, in order
	stash  []*message // messages that have come before somebody expected them
	in     []byte     // what is read, but not looked at, is in[lo:hi]
	lo, hi int

	// The message that is landing: where, and how much is to come in this
	// frame and in later ones.
	to         *recv
	aside      *message
	context    uint32
	left, rest int
	split      []byte // the beginning of an element that came in parts

	blocked bool // the message at in[lo] waits until somebody expects it
	heard   bool // something has come since this was last looked at
	drops   bool // messages that nobody expects are thrown away
}

// reconsider looks again at what has come, since somebody expects more of it
// than before.
func (l *link) reconsider() {
	for l.handOver() {
	}
	l.blocked = false
	l.parse()
	l.fate()
}

// handOver gives one message that was put aside to its receive. It returns
// false if there was none to give.
func (l *link) handOver() bool {
	for i, m := range l.stash {
		r := l.expects(m.sig.Context)
		if r == nil || l.firstAside(m.sig.Context) != m {
			continue
		}
		switch {
		case m.sig != r.op.sig:
			l.differ(r.op, m.sig)
			return false
		case r.held || !m.whole:
			continue
		case len(m.data) != len(r.Into):
			l.e.fail(&transport.SizeError{Peer: l.peer, Got: len(m.data), Want: len(r.Into)})
			return false
		case r.Combine != nil && len(m.data) > 0:
			r.combine(m.data)
		default:
			copy(r.Into, m.data)
		}
		l.stash = slices.Delete(l.stash, i, i+1)
		l.landed(r)
		return true
	}
	return false
}

// A message is one that was put aside.
type message struct {
	sig   transport.Signature
	data  []byte
	whole bool
}

func (l *link) makeBuffers() {
	l.in = make([]byte, inLen)
	l.out = make([]byte, 0, outMax+copyMax)
}

// reads reports whether somebody waits for what the peer has to say.
func (l *link) reads() bool {
	return l.phase == up && l.err == nil && l.e.err == nil && !l.blocked &&
		(len(l.posted) > 0 || len(l.queue) > 0 || l.e.listens || l.drops)
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
		l.heard = true
		switch {
		case !direct:
			l.hi += n
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

// open begins with a frame. It returns false where the frame has to wait.
func (l *link) open(h header, text []byte) bool {
	switch h.kind {
	case data:
		if l.rest > 0 {
			l.nonsense(fmt.Errorf("a message inside another"))
			return false
		}
		return l.openMessage(h, text)
	case more:
		if h.context != l.context || h.body > l.rest {
			l.nonsense(fmt.Errorf("%d bytes more of a message that has no more", h.body))
			return false
		}
		l.left, l.rest = h.body, l.rest-h.body
	case ask:
		l.asked(h, text)
	case bye:
		l.end(&transport.PeerError{Peer: l.peer, Err: transport.ErrLeft})
	case abort:
		l.end(&transport.PeerError{Peer: l.peer, Err: transport.ErrAborted, Reason: string(text)})
	case mismatch:
		m, err := parseMismatch(h, text, l.e.cfg.Rank, l.peer)
		if err != nil {
			l.nonsense(err)
			return false
		}
		l.end(m)
		if o := l.e.within(h.context); o != nil && o.sig == m.Mine {
			l.e.fail(m)
		}
	}
	return true
}

// openMessage begins with a message if somebody expects it. Else it waits where
// it is, which holds the peer back. But it must not hold back the messages of
// another context: if somebody waits for one of those, it is put aside.
func (l *link) openMessage(h header, text []byte) bool {
	r := l.expects(h.context)
	switch {
	case r == nil:
		if o := l.e.within(h.context); o != nil && (h.sequence == o.sig.Sequence && string(text) != o.sig.Call || before(h.sequence, o.sig.Sequence)) {
			l.differ(o, h.signature(text))
			return false
		}
	case l.firstAside(h.context) != nil: // that one is for r
	case h.sequence != r.op.sig.Sequence || string(text) != r.op.sig.Call:
		l.differ(r.op, h.signature(text))
		return false
	case h.total != len(r.Into):
		l.e.fail(&transport.SizeError{Peer: l.peer, Got: h.total, Want: len(r.Into)})
		return false
	case !r.held:
		l.to = r
		l.begin(h)
		return true
	}
	switch {
	case l.drops:
	case slices.ContainsFunc(l.posted, func(r *recv) bool { return r.op.sig.Context != h.context }):
		l.aside = &message{sig: h.signature(text)}
		l.stash = append(l.stash, l.aside)
	default:
		l.blocked = true
		return false
	}
	l.begin(h)
	return true
}

func (l *link) begin(h header) {
	l.context, l.left, l.rest = h.context, h.body, h.total-h.body
	l.took(0)
}

// asked compares the call in which the peer waits for this rank with the one
// in which this rank is.
func (l *link) asked(h header, text []byte) {
	o := l.e.within(h.context)
	switch r := l.expects(h.context); {
	case o == nil:
	case h.sequence == o.sig.Sequence && string(text) != o.sig.Call:
		l.differ(o, h.signature(text))
	case r != nil && l.firstAside(h.context) == nil && before(o.sig.Sequence, h.sequence):
		// What this rank waits for, the peer has not sent, and is past it.
		l.differ(o, h.signature(text))
	}
}

// differ fails the endpoint because the peer has called something else.
func (l *link) differ(o *op, theirs transport.Signature) {
	l.e.fail(&transport.MismatchError{Rank: l.e.cfg.Rank, Peer: l.peer, Mine: o.sig, Theirs: theirs})
}

// signature returns the call that a frame belongs to.
func (h header) signature(text []byte) transport.Signature {
	return transport.Signature{Context: h.context, Sequence: h.sequence, Call: string(text)}
}

// before compares two numbers of calls, which may have wrapped around.
func before(a, b uint32) bool { return int32(a-b) < 0 }

// within returns the operation in progress in a context.
func (e *Endpoint) within(context uint32) *op {
	for _, o := range e.ops {
		if !o.over && !o.drain && o.sig.Context == context {
			return o
		}
	}
	return nil
}

// expects returns the first receive of a context that awaits a message.
func (l *link) expects(context uint32) *recv {
	for _, r := range l.posted {
		if r.op.sig.Context == context {
			return r
		}
	}
	return nil
}

// firstAside returns the first message of a context that was put aside.
func (l *link) firstAside(context uint32) *message {
	for _, m := range l.stash {
		if m.sig.Context == context {
			return m
		}
	}
	return nil
}

// take takes bytes of the current frame to where they go.
func (l *link) take(p []byte) {
	switch {
	case l.to != nil && l.to.Combine == nil:
		l.to.got += copy(l.to.Into[l.to.got:], p)
	case l.to != nil:
		l.combine(l.to, p)
	case l.aside != nil:
		l.aside.data = append(l.aside.data, p...)
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
	if l.aside != nil {
		l.aside.whole = true
		l.aside = nil
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
