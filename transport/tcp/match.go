package tcp

import (
	"fmt"
	"slices"

	"github.com/chorale-go/chorale/transport"
)

// A message is one that was put aside.
type message struct {
	sig   transport.Signature
	data  []byte
	whole bool
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
	case bye, abort:
		l.end(parted(l.peer, h.kind, string(text)))
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
	default:
		if err := l.openLetter(h, text); err != nil {
			l.nonsense(err)
			return false
		}
	}
	return true
}

// openMessage begins with a message if somebody expects it. Else it waits where
// it is, which holds the peer back. But it must not hold back letters, nor the
// messages of another context: if somebody waits for those, it is put aside.
func (l *link) openMessage(h header, text []byte) bool {
	r := l.expects(h.context)
	switch {
	case r == nil:
		if o := l.e.within(h.context); o != nil && (before(h.sequence, o.sig.Sequence) || h.contradicts(&o.sig, text)) {
			l.differ(o, h.signature(text))
			return false
		}
	case l.firstAside(h.context) != nil: // that one is for r
	case h.sequence != r.op.sig.Sequence || h.contradicts(&r.op.sig, text):
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
	case l.awaits() || slices.ContainsFunc(l.posted, func(r *recv) bool { return r.op.sig.Context != h.context }):
		l.keep = &message{sig: h.signature(text)}
		l.aside = append(l.aside, l.keep)
	default:
		l.blocked = true
		return false
	}
	l.begin(h)
	return true
}

// asked compares the call in which the peer waits for this rank with the one
// in which this rank is.
func (l *link) asked(h header, text []byte) {
	o := l.e.within(h.context)
	switch r := l.expects(h.context); {
	case o == nil:
	case h.contradicts(&o.sig, text):
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

// within returns the operation in progress in a context.
func (e *Endpoint) within(context uint32) *op {
	for _, o := range e.ops {
		if !o.over && !o.drain && !o.mail && o.sig.Context == context {
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
	for _, m := range l.aside {
		if m.sig.Context == context {
			return m
		}
	}
	return nil
}

// reconsider looks again at what has come, since somebody expects more of it
// than before.
func (l *link) reconsider() {
	for l.handOver() {
	}
	l.blocked = false
	l.parse()
	l.fate()
	if l.due {
		l.due = false
		l.flush()
	}
}

// handOver gives one message that was put aside to its receive. It returns
// false if there was none to give.
func (l *link) handOver() bool {
	for i, m := range l.aside {
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
		l.aside = slices.Delete(l.aside, i, i+1)
		l.landed(r)
		return true
	}
	return false
}

// unread returns the call of a message that nobody has received.
func (l *link) unread() (sig transport.Signature, ok bool) {
	switch {
	case len(l.aside) > 0:
		return l.aside[0].sig, true
	case l.blocked: // then its header and text have come
		b := l.in[l.lo:l.hi]
		if h, err := parseHeader(b); err == nil {
			return h.signature(b[headerLen : headerLen+h.text]), true
		}
	}
	return sig, false
}
