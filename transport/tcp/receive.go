package tcp

import (
	"fmt"
	"slices"
	"time"
	"unsafe"

	"github.com/chorale-go/chorale/transport/internal/match"
)

const (
	inLen     = 32 << 10  // bytes of a link's read buffer: it holds every header with its text
	bulkLen   = 256 << 10 // bytes of the endpoint's buffer, where those of long messages lie while they are combined
	directMin = 4 << 10   // bytes of a frame from which on they are read to where they go

	// overrunMax is how many bytes of unexpected messages may be under way from a peer
	// that has been told to hold their contexts. They are in its socket and in mine, and
	// in one frame of each context.
	overrunMax = 256 << 20
	// partialMax is how many messages of a peer may be under way at the same time, each
	// in a context of its own.
	partialMax = 64 << 10
)

// A recvBuffer is the half of a link that reads.
type recvBuffer struct {
	queue         match.Queue
	buf           []byte // what is read, but not parsed, is in buf[lo:hi]
	lo, hi        int
	landing                 // the message that is being received
	partials      []partial // messages of other contexts, of which more is to come
	unexpectedLen int       // what the unexpected messages take, in bytes

	headUnexpected bool      // the message at buf[lo] waits until it is expected
	heard          bool      // something has come since this was last looked at
	fresh          bool      // something has come since this rank last sent
	looked         time.Time // when a rank that only sends last looked whether something has
	drains         bool      // all that has come is taken, because nothing can be written any more
}

// A landing is where the bytes of the current frame go, and how many are to come.
type landing struct {
	discards bool          // they are thrown away
	message  *match.Tagged // otherwise to a tagged message; if nil, to a message of a step,
	partial                // which is the last one of which a frame has come
	left     int           // bytes to come in this frame
}

// A partial is a message of a step of which not all frames have come. If it belongs
// nowhere, it is thrown away.
type partial struct {
	recv       *match.Recv    // it goes to a receive,
	unexpected *match.Message // or to an unexpected message
	context    uint32
	rest       int // bytes to come in later frames
}

// reads reports whether an operation waits for what the peer has to say.
func (l *link) reads() bool {
	return l.phase == up && l.err == nil && !l.e.engine.Failed() && !l.in.headUnexpected &&
		(!l.in.queue.Idle() || len(l.out.queue) > 0 || l.expectsTagged() || l.e.polls.all || l.in.drains)
}

// poll takes what the peer has sent, up to a message that is not expected.
func (l *link) poll() {
	all := l.e.polls.all
	l.e.polls.all = true
	defer func() { l.e.polls.all = all }()
	l.receive()
}

// receive takes what the peer has sent, as far as an operation waits for it.
func (l *link) receive() {
	for l.reads() {
		p, direct := l.space()
		n, err := l.stream.read(p)
		switch {
		case err == errAgain:
			return
		case err != nil:
			l.lost(err)
			return
		}
		l.e.polls.progressed++
		l.in.heard, l.in.fresh = true, true
		switch {
		case !direct:
			l.in.hi += n
		case l.in.discards:
			l.put(p[:n])
		case l.in.message != nil:
			l.messageGot(n)
		case l.in.recv != nil && l.in.recv.Combine == nil:
			l.in.recv.Got += n
			l.got(n)
		default:
			l.put(p[:n])
		}
		l.parse()
		if len(l.out.controls) > 0 { // the peer, which may send without end, is to hold a context
			l.flush()
		}
		if n < len(p) && !l.in.drains {
			return // the stream was empty then
		}
	}
}

// space returns where to read to. If it is direct, that is the memory where the bytes
// of the current frame go or are combined from, otherwise the link's buffer, which may
// hold the beginning of a header.
func (l *link) space() (p []byte, direct bool) {
	in := &l.in
	if in.left >= directMin && in.lo == in.hi {
		switch r := in.recv; {
		case in.message != nil:
			return in.message.Data[in.message.Got:][:in.left], true
		case r == nil || in.discards:
			return l.e.room(0, in.left), true
		case r.Combine == nil:
			return r.Into[r.Got : r.Got+in.left], true
		default:
			return l.e.room(r.Got, in.left), true
		}
	}
	in.hi = copy(in.buf, in.buf[in.lo:in.hi])
	in.lo = 0
	return in.buf[in.hi:], false
}

// room returns at most n bytes of the endpoint's buffer for what lies at an offset of
// a message. Elements are aligned there as they are in the message.
func (e *Endpoint) room(offset, n int) []byte {
	if e.bulk == nil {
		e.bulk = make([]byte, bulkLen)
	}
	b := e.bulk[offset%64:]
	return b[:min(len(b), n)]
}

// parse looks at what has been read.
func (l *link) parse() {
	in := &l.in
	for l.err == nil && !l.e.engine.Failed() {
		b := in.buf[in.lo:in.hi]
		if in.left > 0 {
			if len(b) == 0 {
				return
			}
			b = b[:min(len(b), in.left)]
			in.lo += len(b)
			l.put(b)
			continue
		}
		if len(b) < headerLen {
			return
		}
		h, err := parseHeader(b)
		if err != nil {
			l.protocolError(err)
			return
		}
		if len(b) < headerLen+h.text || !l.beginFrame(h, b[headerLen:headerLen+h.text]) {
			return
		}
		in.lo += headerLen + h.text
	}
}

// beginFrame begins with a frame. It returns false where the frame has to wait.
func (l *link) beginFrame(h header, text []byte) bool {
	switch h.kind {
	case messageFrame:
		return l.beginMessage(h, text)
	case chunkFrame:
		if !l.in.turnTo(h.context) || h.body > l.in.rest {
			l.protocolError(fmt.Errorf("%d bytes more of a message that has no more", h.body))
			return false
		}
		l.in.left, l.in.rest = h.body, l.in.rest-h.body
	case probeFrame:
		l.e.engine.HandleProbe(&l.in.queue, l.peer, l.in.queue.CallOf(h.context, h.sequence, text))
	case revocationFrame:
		if err := l.handleRevocation(h, text); err != nil {
			l.protocolError(err)
			return false
		}
	case leftFrame, abortFrame, mismatchFrame:
		if err := l.handleNotice(h, text); err != nil {
			l.protocolError(err)
			return false
		}
	default:
		if err := l.handleTagged(h, text); err != nil {
			l.protocolError(err)
			return false
		}
	}
	return true
}

// turnTo makes the message of a context the current one, and reports whether there is
// one of which more is to come.
func (in *recvBuffer) turnTo(context uint32) bool {
	if in.rest > 0 && in.context == context {
		return true
	}
	i := slices.IndexFunc(in.partials, func(p partial) bool { return p.context == context })
	if i < 0 {
		return false
	}
	p := in.partials[i]
	if in.rest > 0 {
		in.partials[i] = in.partial
	} else {
		in.partials = slices.Delete(in.partials, i, i+1)
	}
	in.partial = p
	return true
}

// beginMessage begins with a message if its receive is posted. Otherwise the message
// stays where it is, which holds the peer back. But it must not hold back tagged
// messages, nor messages of other contexts, nor what the peer says about messages of
// this rank: if an operation waits for those, the message is moved to the unexpected
// queue.
func (l *link) beginMessage(h header, text []byte) bool {
	in := &l.in
	if (in.rest > 0 || len(in.partials) > 0) && (in.turnTo(h.context) || len(in.partials) >= partialMax) {
		l.protocolError(fmt.Errorf("a message inside another"))
		return false
	}
	m := match.Header{Call: in.queue.CallOf(h.context, h.sequence, text), Size: h.total}
	verdict, r, s := in.queue.Match(&m, &l.e.engine)
	p := partial{context: h.context, rest: h.total - h.body}
	switch {
	case verdict == match.Deliver:
		p.recv = r
	case verdict == match.Drop:
	case l.e.engine.Refuse(verdict, l.peer, &m, r, s):
		return false
	case l.e.engine.Err() != nil: // this rank leaves
	case l.expectsTagged() || len(l.out.queue) > 0 || in.drains || in.queue.PostedElsewhere(h.context):
		p.unexpected = l.enqueue(m)
	default:
		in.headUnexpected = true
		return false
	}
	if in.rest > 0 {
		in.partials = append(in.partials, in.partial)
	}
	in.partial, in.left = p, h.body
	l.got(0)
	return l.err == nil
}

// put takes bytes of the current frame to where they go.
func (l *link) put(p []byte) {
	in := &l.in
	switch {
	case in.discards:
		in.left -= len(p)
		in.discards = in.left > 0
		return
	case in.message != nil:
		copy(in.message.Data[in.message.Got:], p)
		l.messageGot(len(p))
		return
	case in.recv != nil:
		if in.recv.Combine != nil && uintptr(unsafe.Pointer(&p[0]))%8 != uintptr(in.recv.Got)%8 {
			b := l.e.room(in.recv.Got, len(p))
			copy(b, p)
			p = b
		}
		in.recv.Put(p)
	case in.partial.unexpected != nil && !in.partial.unexpected.Released:
		m := in.partial.unexpected
		m.Data = append(m.Data, p...)
		m.Got += len(p)
		l.holds(len(p))
	}
	l.got(len(p))
}

// got notes that n bytes of the current frame are where they go.
func (l *link) got(n int) {
	in := &l.in
	if in.left -= n; in.left > 0 || in.rest > 0 {
		return
	}
	r, m := in.recv, in.partial.unexpected
	in.partial = partial{}
	if r != nil {
		in.queue.Unpost(r)
		in.queue.Complete(r)
	}
	if m != nil {
		l.e.recheck(l)
	}
}

// A stall probe is what a rank sends to a peer that has said nothing for a while: the
// call in which it waits for the peer. Ranks that only wait for each other learn so
// that they are in different calls.

// probe sends a stall probe for each receive that has waited for long.
func (l *link) probe() {
	if l.in.heard {
		l.in.heard = false
		return
	}
	if !l.mayProbe() {
		return
	}
	for _, r := range l.in.queue.Receives() {
		if !r.Probed && l.mayProbe() {
			r.Probed = true
			s := &r.Step.Signature
			h := header{kind: probeFrame, text: len(s.Call), context: s.Context, sequence: s.Sequence}
			l.out.head = append(h.append(l.out.buf[:0]), s.Call...)
			l.flush()
		}
	}
}

// mayProbe reports whether there is a stall probe to send. There is none where a
// message to the peer is on its way, which says as much.
func (l *link) mayProbe() bool {
	if l.phase != up || l.err != nil || l.out.pending() || l.in.recv != nil {
		return false
	}
	for _, r := range l.in.queue.Receives() {
		if !r.Probed {
			return true
		}
	}
	return false
}
