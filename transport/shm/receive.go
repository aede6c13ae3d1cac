package shm

import (
	"fmt"
	"slices"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
	"github.com/chorale-go/chorale/transport/internal/progress"
)

// A partial is a message of a step that has arrived in part.
type partial struct {
	first      uint32         // the number of the frame that it began with
	recv       *match.Recv    // where it goes: to a receive,
	unexpected *match.Message // or to an unexpected message
	requested  bool           // this rank has made a pull request for it
}

// poll takes what the peer has sent, up to a message that is not expected yet.
func (l *link) poll() {
	for l.in.queue.First() != nil && l.deliverUnexpected() {
	}
	for !l.in.headUnexpected && !l.e.engine.Failed() {
		c, k := l.next()
		if c == nil {
			return
		}
		ok := true
		switch {
		case k.beginsMessage():
			ok = l.receive(c, k)
		case k == chunkFrame:
			ok = l.receiveChunk(c)
		case k == remainderFrame:
			ok = l.receiveRemainder(c)
		default:
			ok = l.receiveTagged(c, k)
		}
		if !ok {
			return
		}
	}
}

// receive begins with a message if its receive is posted. Otherwise the message stays
// where it is, which holds the peer back. But it must not hold back tagged messages,
// nor messages of other contexts: if an operation waits for those, the message is
// moved to the unexpected queue.
func (l *link) receive(c *cell, k frameKind) bool {
	if !l.validFrame(c, k) {
		l.protocolError()
		return false
	}
	h := c.matchHeader(k)
	verdict, r, s := l.in.queue.Match(&h, &l.e.engine)
	switch verdict {
	case match.Mismatch:
		l.e.engine.FailMismatch(s, l.peer, l.signature(&h.Call))
		return false
	case match.WrongSize:
		l.e.engine.FailSize(r, h.Size)
		return false
	}
	t := partial{first: l.in.taken + 1}
	switch {
	case verdict == match.Unexpected && !l.mustDequeue(h.Context):
		l.in.headUnexpected = true
		return false
	case k == rendezvousFrame && l.in.pullsFull():
		return false
	case verdict == match.Deliver:
		t.recv = r
		l.in.queue.Unpost(r)
	default:
		t.unexpected = &match.Message{Header: h, Data: make([]byte, h.Size)}
		l.in.queue.Enqueue(t.unexpected)
	}
	return l.begin(t, c, k)
}

// mustDequeue reports whether an operation waits for what may come behind a message of
// a context.
func (l *link) mustDequeue(context uint32) bool {
	return l.expectsTagged() || len(l.in.partials) > 0 || l.in.queue.PostedElsewhere(context)
}

// validFrame reports whether a frame that begins a message can be one.
func (l *link) validFrame(c *cell, k frameKind) bool {
	switch k {
	case inlineFrame:
		return c.step().size <= inlineMax
	case multicastFrame:
		return c.step().size <= multicastMax && c != l.in.cell(l.in.taken&l.in.mask)
	case stagedFrame:
		return c.staged().total <= totalMax
	}
	return c.remote().total <= totalMax
}

// begin takes a message, or its first chunk, to where it goes.
func (l *link) begin(t partial, c *cell, k frameKind) bool {
	switch k {
	case inlineFrame:
		n := c.step().size
		t.put(c.body[:n:n])
		l.take()
	case multicastFrame:
		t.put(c.multicastData())
		l.takeMulticast()
	case rendezvousFrame:
		return l.pull(t, c)
	default:
		if !l.unstage(t, c) {
			return false
		}
		if !t.complete() {
			l.in.partials = append(l.in.partials, t)
			return true
		}
	}
	l.finish(&t)
	return true
}

// unstage takes the next bytes of a message out of a staging buffer.
func (l *link) unstage(t partial, c *cell) bool {
	p, size := c.staged(), c.step().size
	b, ok := l.staged(p.buffer, size)
	if !ok || !t.continuesAt(p.offset, int(size)) {
		l.protocolError()
		return false
	}
	t.put(b)
	l.take()
	return true
}

// continuesAt reports whether n bytes at an offset are the next ones of the message.
func (t *partial) continuesAt(offset uint64, n int) bool {
	_, got, size := t.state()
	return offset == uint64(got) && n <= size-got
}

// state returns where plain bytes go, how many have arrived, and how many there are.
func (t *partial) state() (into []byte, got, size int) {
	if t.recv != nil {
		return t.recv.Into, t.recv.Got, len(t.recv.Into)
	}
	return t.unexpected.Data, t.unexpected.Got, t.unexpected.Size
}

// put takes the next bytes to where they go.
func (t *partial) put(p []byte) {
	if t.recv != nil {
		t.recv.Put(p)
		return
	}
	t.unexpected.Got += copy(t.unexpected.Data[t.unexpected.Got:], p)
}

// complete reports whether the whole message has arrived.
func (t *partial) complete() bool {
	_, got, size := t.state()
	return got == size
}

// finish completes the receive of a message that has arrived.
func (l *link) finish(t *partial) {
	if t.recv != nil {
		l.in.queue.Complete(t.recv)
	}
}

// find returns the message that a frame continues.
func (r *recvRing) find(first uint32) int {
	return slices.IndexFunc(r.partials, func(t partial) bool { return t.first == first })
}

// receiveChunk continues a message out of a staging buffer.
func (l *link) receiveChunk(c *cell) bool {
	i := l.in.find(c.staged().first)
	if i < 0 {
		l.protocolError()
		return false
	}
	t := l.in.partials[i]
	if !l.unstage(t, c) {
		return false
	}
	if t.complete() {
		l.in.partials = slices.Delete(l.in.partials, i, i+1)
		l.finish(&t)
	}
	return true
}

// receiveRemainder continues a message out of the peer's memory.
func (l *link) receiveRemainder(c *cell) bool {
	i := l.in.find(c.remote().first)
	if i < 0 {
		l.protocolError()
		return false
	}
	if l.in.pullsFull() {
		return false
	}
	t := l.in.partials[i]
	l.in.partials = slices.Delete(l.in.partials, i, i+1)
	return l.pull(t, c)
}

// deliverUnexpected gives one unexpected message to its receive. It returns false if
// there was none to give.
func (l *link) deliverUnexpected() bool {
	verdict, m, r := l.in.queue.MatchUnexpected()
	switch verdict {
	case match.Mismatch:
		l.e.engine.FailMismatch(r.Step, l.peer, l.signature(&m.Call))
	case match.WrongSize:
		l.e.engine.FailSize(r, m.Size)
	case match.Deliver:
		l.in.headUnexpected = false // the frame at the head may be next
		l.e.polls.progressed = true
		l.in.queue.Deliver(m, r)
		return true
	}
	return false
}

// unreceived returns the call of a message that was not received.
func (l *link) unreceived() (theirs transport.Signature, ok bool) {
	if m := l.in.queue.First(); m != nil {
		return l.signature(&m.Call), true
	}
	if c, k := l.next(); c != nil && k.beginsMessage() {
		h := c.matchHeader(k)
		return l.signature(&h.Call), true
	}
	return theirs, false
}

// cancel removes the receives of a step that has failed.
func (r *recvRing) cancel(s *match.Step) {
	r.queue.Cancel(s)
	r.partials = slices.DeleteFunc(r.partials, func(t partial) bool { return t.recv != nil && t.recv.Step == s })
}

// blocks reports whether a step cannot complete unless the peer does something.
func (l *link) blocks(o *progress.Op) bool {
	if slices.ContainsFunc(l.e.out.queue, func(m outgoing) bool { return m.op == o && m.link == l }) {
		return true
	}
	for i := range l.e.out.rendezvous {
		if r := &l.e.out.rendezvous[i]; r.link == l && r.op == o && (r.pulled || !l.out.hasTaken(r.frame)) {
			return true
		}
	}
	if o.FirstIncomplete(l.peer) == nil {
		return false
	}
	c, _ := l.next()
	m := l.in.queue.FirstIn(o.Context)
	return c == nil && (m == nil || !m.Complete())
}

// protocolError ends the link because the peer has written what no rank writes, and
// this endpoint's part with it: an operation that waits for what comes after that
// would wait for ever.
func (l *link) protocolError() {
	l.end(&transport.PeerError{Peer: l.peer, Err: transport.ErrLost, Reason: fmt.Sprintf("its ring to rank %d carries what no rank writes", l.e.cfg.Rank)})
	l.e.engine.Fail(l.err)
}
