package shm

import (
	"fmt"
	"slices"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
	"github.com/chorale-go/chorale/transport/internal/progress"
)

// poll takes what the peer has sent, up to a message that is not expected yet.
func (l *link) poll() {
	for l.in.queue.First() != nil && l.deliverUnexpected() {
	}
	for n := 0; n < pollFrames && !l.in.headUnexpected && !l.e.engine.Failed(); n++ {
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
		case k == abandonFrame:
			ok = l.receiveEnd(c)
		default:
			ok = l.receiveTagged(c, k)
		}
		if !ok {
			return
		}
	}
}

// pollFrames is how many frames of one peer are taken at a time: more than a ring and
// the multicast cells hold, so that what a peer has left behind is all taken, and few
// enough that a peer that writes without end does not keep this rank from looking
// elsewhere.
const pollFrames = 64

// A firstFrame is a frame that begins a message. It is read once: what a peer writes there
// although it may not, must not be checked as one thing and used as another.
type firstFrame struct {
	cell *cell
	kind frameKind
	stepHeader
	staged stagedPayload // of a stagedFrame
	remote remotePayload // of a rendezvousFrame
}

func (c *cell) first(k frameKind) firstFrame {
	f := firstFrame{cell: c, kind: k, stepHeader: *c.step()}
	switch k {
	case stagedFrame:
		f.staged = *c.staged()
	case rendezvousFrame:
		f.remote = *c.remote()
	}
	return f
}

// match returns the match header of the message.
func (f *firstFrame) match() match.Header {
	h := match.Header{Call: match.Call{Signature: transport.Signature{Context: f.context, Sequence: f.sequence}, Hash: f.hash}}
	switch f.kind {
	case inlineFrame, multicastFrame, pairFrame:
		h.Size = int(f.size)
	case stagedFrame:
		h.Size = int(f.staged.total)
	default:
		h.Size = int(f.remote.total)
	}
	return h
}

// valid reports whether the peer can have sent the frame.
func (l *link) valid(f *firstFrame) bool {
	switch f.kind {
	case inlineFrame:
		return f.size <= inlineMax
	case multicastFrame:
		return f.size <= multicastMax && f.cell != l.in.cell(l.in.taken&l.in.mask)
	case pairFrame:
		return f.size <= pairMax && l.pair.has(f.cell)
	case stagedFrame:
		return f.staged.total <= totalMax
	}
	return f.remote.valid(0, l.in.places)
}

// receive begins with a message if its receive is posted. Otherwise the message stays
// where it is, which holds the peer back. But it must not hold back tagged messages,
// nor messages of other contexts: if an operation waits for those, the message is
// moved to the unexpected queue.
func (l *link) receive(c *cell, k frameKind) bool {
	f := c.first(k)
	if !l.valid(&f) {
		l.protocolError()
		return false
	}
	h := f.match()
	verdict, r, s := l.in.queue.Match(&h, &l.e.engine)
	t := partial{first: l.in.taken + 1}
	switch {
	case verdict == match.Mismatch:
		l.e.engine.FailMismatch(s, l.peer, l.signature(&h.Call))
		return false
	case verdict == match.WrongSize:
		l.e.engine.FailSize(r, h.Size)
		return false
	case verdict == match.Deliver:
		t.recv = r
		l.in.queue.Unpost(r)
	case verdict == match.Drop:
		t.unexpected = &match.Message{Header: h, Released: true}
	case l.mustDequeue(h.Context):
		n := transport.MessageCost
		if k == inlineFrame || k == multicastFrame || k == pairFrame {
			n += h.Size
		}
		if !l.mayQueue(n) {
			l.protocolError()
			return false
		}
		t.unexpected = &match.Message{Header: h, Rendezvous: k == rendezvousFrame}
		if l.in.queue.Enqueue(t.unexpected) {
			l.in.held++
		}
	default:
		l.in.headUnexpected = true
		return false
	}
	ok := l.begin(t, &f)
	l.admit()
	return ok
}

// excessMax is how many bytes beyond the bound a peer's unexpected messages can take: what it
// sends after it was told to hold a context, and before it looks, which is far less. More
// is a protocol error.
const excessMax = 16 * transport.UnexpectedMax

// mayQueue notes that n bytes are added to the unexpected queue, and reports whether the
// peer keeps to the flow control.
func (l *link) mayQueue(n int) bool {
	l.in.unexpectedLen += n
	return l.in.unexpectedLen <= transport.UnexpectedMax+excessMax
}

// mustDequeue reports whether an operation waits for what may come behind a message of
// a context.
func (l *link) mustDequeue(context uint32) bool {
	return l.expectsTagged() || l.in.arriving() || l.in.queue.PostedElsewhere(context)
}

// begin takes a message, or its first chunk, to where it goes.
func (l *link) begin(t partial, f *firstFrame) bool {
	switch f.kind {
	case inlineFrame:
		t.put(f.cell.body[:f.size:f.size])
		l.take()
	case multicastFrame:
		t.put(f.cell.multicast().data[:f.size:f.size])
		l.takeMulticast()
	case pairFrame:
		t.put(f.cell.pair().data[:f.size:f.size])
		l.takePair(f.cell)
	case rendezvousFrame:
		return l.receiveAnnounced(t, f.remote)
	default:
		if !l.unstage(t, f.size, &f.staged) {
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
		l.in.unexpectedLen -= m.Got + transport.MessageCost
		l.resume()
		return true
	case match.Continue:
		l.e.polls.progressed = true
		return l.continueUnexpected(m, r)
	}
	return false
}

// continueUnexpected gives what has arrived of an unexpected message to its receive,
// which takes the rest.
func (l *link) continueUnexpected(m *match.Message, r *match.Recv) bool {
	i := slices.IndexFunc(l.in.partials, func(t partial) bool { return t.unexpected == m })
	l.in.queue.Continue(m, r)
	l.in.queue.Unpost(r)
	l.in.unexpectedLen -= m.Got + transport.MessageCost
	t := &l.in.partials[i]
	t.recv, t.unexpected = r, nil
	l.resume()
	if !t.waits {
		return true
	}
	announced := *t
	l.in.partials = slices.Delete(l.in.partials, i, i+1)
	return l.readAnnounced(announced)
}

// admit tells the peer of which contexts this rank takes messages of steps, if too much
// of what it has sent is unexpected: of those for which a receive waits, and has nothing
// in the unexpected queue.
func (l *link) admit() {
	if l.in.held == 0 {
		return
	}
	all := l.e.contexts[:0]
	for _, r := range l.in.queue.Receives() {
		if c := r.Step.Context; l.in.queue.FirstIn(c) == nil {
			all = append(all, c)
		}
	}
	for i := range l.in.partials {
		if t := &l.in.partials[i]; t.recv != nil {
			all = append(all, t.recv.Step.Context)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	l.e.contexts = all
	if n := len(all); n > admittedMax { // the others get their turn at the next check for stalls
		all = append(all, all...)[l.in.rotation%n:][:admittedMax]
	}
	l.in.restrict(all)
	l.noteWakeup(took)
}

// resume lets the peer go on when messages have left the unexpected queue.
func (l *link) resume() {
	if l.in.held == 0 {
		return
	}
	for _, ok := l.in.queue.Resume(); ok; _, ok = l.in.queue.Resume() {
		l.in.held--
	}
	if l.in.held == 0 {
		l.in.lift()
		l.noteWakeup(took)
	}
	l.admit()
}

// compareUnexpected fails the endpoint if a message in the unexpected queue of a
// receiver of a step contradicts the step.
func (e *Endpoint) compareUnexpected(step *transport.Step) {
	for i := range step.Sends {
		for _, to := range step.Sends[i].To {
			l := &e.links[to]
			if l.in.queue.First() == nil {
				continue
			}
			if m, s := l.in.queue.Excluded(&e.engine); m != nil {
				e.engine.FailMismatch(s, to, l.signature(&m.Call))
				return
			}
		}
	}
}

// release drops what there is of messages of a context. The rest of one that arrives is
// taken, and dropped.
func (l *link) release(context uint32) {
	l.in.queue.Release(context)
	l.dropReleased()
}

// dropReleased lets the peer go on whose messages were released.
func (l *link) dropReleased() {
	l.in.unexpectedLen = l.in.queue.Held()
	var announced []partial
	l.in.partials = slices.DeleteFunc(l.in.partials, func(t partial) bool {
		dropped := t.waits && t.released()
		if dropped {
			announced = append(announced, t)
		}
		return dropped
	})
	for _, t := range announced {
		l.dropAnnounced(t)
	}
	l.resume()
}

// unreceived returns the call of a message that was not received.
func (l *link) unreceived() (theirs transport.Signature, ok bool) {
	if m := l.in.queue.First(); m != nil {
		return l.signature(&m.Call), true
	}
	if c, k := l.next(); c != nil && k.beginsMessage() {
		f := c.first(k)
		h := f.match()
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
		if r := &l.e.out.rendezvous[i]; r.link == l && r.op == o && r.reply() != complete {
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

// protocolError ends the link because the peer has written what no rank writes: an
// operation that waits for what comes after that would wait for ever.
func (l *link) protocolError() {
	l.end(&transport.PeerError{Peer: l.peer, Err: transport.ErrLost, Reason: fmt.Sprintf("its ring to rank %d carries what no rank writes", l.e.cfg.Rank)})
}
