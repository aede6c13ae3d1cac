package tcp

import (
	"fmt"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
)

// enqueue adds an unexpected message, and has the peer hold its context if they are too
// many.
func (l *link) enqueue(h match.Header) *match.Message {
	m := &match.Message{Header: h}
	hold := l.in.queue.Enqueue(m)
	l.holds(transport.MessageCost)
	if hold {
		l.controlSoon(header{kind: holdFrame, context: h.Context})
	}
	return m
}

// holds counts bytes of unexpected messages.
func (l *link) holds(n int) {
	if l.in.unexpectedLen += n; l.in.unexpectedLen > transport.UnexpectedMax+overrunMax {
		l.protocolError(fmt.Errorf("%d bytes of messages that it was told to hold", l.in.unexpectedLen))
	}
}

// resume lets the peer go on in contexts whose unexpected messages were received.
func (l *link) resume() {
	for context, ok := l.in.queue.Resume(); ok; context, ok = l.in.queue.Resume() {
		l.controlSoon(header{kind: resumeFrame, context: context})
	}
}

// recheckNow looks again at what has come, because more of it is expected than before.
func (l *link) recheckNow() {
	for l.deliverUnexpected() {
	}
	if m, s := l.in.queue.Excluded(&l.e.engine); m != nil {
		l.e.engine.FailMismatch(s, l.peer, m.Signature)
	}
	l.in.headUnexpected = false
	l.parse()
	l.failWaiters()
	l.tagged.AnnounceKeptBack()
	if l.out.ready {
		l.out.ready = false
		l.flush()
	}
}

// deliverUnexpected gives one unexpected message to its receive, or what has arrived of
// it. It returns false if there was none to give.
func (l *link) deliverUnexpected() bool {
	verdict, m, r := l.in.queue.MatchUnexpected()
	switch verdict {
	case match.Deliver:
		l.in.queue.Deliver(m, r)
	case match.Continue:
		l.in.queue.Continue(m, r)
		l.in.continues(m, r)
	case match.Unexpected:
		return false
	default:
		l.e.engine.Refuse(verdict, l.peer, &m.Header, r, r.Step)
		return false
	}
	l.holds(-m.Got - transport.MessageCost)
	l.resume()
	return true
}

// continues has the rest of an unexpected message go to its receive.
func (in *recvBuffer) continues(m *match.Message, r *match.Recv) {
	p := &in.partial
	for i := 0; p.unexpected != m; i++ {
		p = &in.partials[i]
	}
	p.unexpected, p.recv = nil, r
}

// release drops what has come in a context.
func (l *link) release(context uint32) {
	l.in.queue.Release(context)
	l.in.unexpectedLen = l.in.queue.Held()
	l.resume()
}

// unreceived returns the call of a message that was not received.
func (l *link) unreceived() (theirs transport.Signature, ok bool) {
	if m := l.in.queue.First(); m != nil {
		return m.Signature, true
	}
	if l.in.headUnexpected { // then its header and text have come
		b := l.in.buf[l.in.lo:l.in.hi]
		if h, err := parseHeader(b); err == nil {
			return l.in.queue.CallOf(h.context, h.sequence, b[headerLen:headerLen+h.text]).Signature, true
		}
	}
	return theirs, false
}
