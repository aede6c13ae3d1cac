package shm

import (
	"github.com/chorale-go/chorale/internal/processors"
	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
)

const (
	// fastMax is how long a message may be that takes the fast path.
	fastMax = chunkLen
	// fastPolls is how often the fast path polls in vain, where it may spin, before it
	// leaves the waiting to the progress owner, which backs off. A message under way
	// arrives sooner.
	fastPolls = 30
	// peeks is how often the fast path looks where the next message is likely before it
	// polls everything that a message may be in. A cache line in which nothing arrives is
	// better left to the rank that will write there.
	peeks = 4
)

// fastPath does a step of short messages, or the beginning of one, while nothing else
// is in progress. It sends all messages, and receives those of the peers in the order
// in which the step lists them, as long as each is the one that is due and arrives soon, or
// at once if the rank does not wait: then no operation is needed. It leaves in step what
// remains to be done, and reports whether that is nothing, or the step has failed.
func (e *Endpoint) fastPath(step *transport.Step, waits bool) bool {
	if !e.fits(step) {
		return false
	}
	call := match.Call{Signature: step.Signature, Hash: e.calls.hash(step.Signature.Call)}
	for i := range step.Sends {
		if !e.sendFast(&step.Sends[i], &call) {
			step.Sends = step.Sends[i:]
			return false
		}
	}
	if e.wakePeers(); e.polls.terminated {
		e.checkPeers()
		if e.failUndelivered(step, fastMax); e.engine.ErrIn(call.Context) != nil {
			return true
		}
	}
	if len(step.Sends) > 0 {
		step.Sends, e.wait.sent = nil, true
	}
	polls, yields := 1, 0
	if waits && len(step.Recvs) > 0 {
		polls = e.links[step.Recvs[0].From].fastPolls()
	}
	for len(step.Recvs) > 0 {
		r := &step.Recvs[0]
		l := &e.links[r.From]
		c, k := l.next()
		if c == nil {
			if polls--; polls <= 0 {
				if yields++; !waits || yields > fastYields || !e.fastYield() {
					return false
				}
				polls = l.fastPolls()
			}
			if !e.wait.Oversubscribed { // where the polls before a yield are counted
				l.awaitLine(len(r.Into))
			}
			continue
		}
		h := c.step()
		if !k.beginsMessage() || h.context != call.Context || h.sequence != call.Sequence || h.hash != call.Hash || int(h.size) != len(r.Into) {
			return false
		}
		p, whole := l.wholeMessage(c, k, uint32(len(r.Into)))
		if !whole {
			return false
		}
		e.landFast(r, p)
		l.in.headUnexpected = false
		switch k {
		case multicastFrame:
			l.takeMulticast()
		case pairFrame:
			l.takePair(c)
		case inlineFrame:
			l.takeInline()
		default:
			l.take()
		}
		step.Recvs = step.Recvs[1:]
	}
	return true
}

// awaitLine looks for a message of some size where it is likely, until it has come or the
// fast path should poll everything.
func (l *link) awaitLine(size int) {
	processors.Pause()
	for n := 1; n < peeks && !l.peek(size); n++ {
		processors.Pause()
	}
}

// fits reports whether a step may take the fast path.
func (e *Endpoint) fits(step *transport.Step) bool {
	if len(e.engine.Ops()) > 0 || e.polls.terminated || e.polls.unflushed || e.polls.anySource > 0 {
		return false
	}
	messages := 0
	for i := range step.Sends {
		messages += len(step.Sends[i].To)
	}
	for i := range step.Sends {
		s := &step.Sends[i]
		if len(s.Data) > fastMax {
			return false
		}
		for _, to := range s.To {
			if l := &e.links[to]; l.err != nil || !l.out.room(uint32(messages)) {
				return false
			}
		}
	}
	for i := range step.Recvs {
		r := &step.Recvs[i]
		if len(r.Into) > fastMax {
			return false
		}
		if l := &e.links[r.From]; l.err != nil || l.in.queue.First() != nil || len(l.in.partials) > 0 {
			return false
		}
	}
	return true
}

// sendFast writes a message for which there is room in the rings. It returns false if
// there is no staging buffer for it.
func (e *Endpoint) sendFast(s *transport.Send, call *match.Call) bool {
	switch {
	case len(s.To) == 1 && e.links[s.To[0]].writePair(call, s.Data):
	case len(s.Data) > inlineMax:
		b := e.freeBuffer(forSteps)
		if b == noBuffer {
			return false
		}
		n := e.stage(b, s.Data)
		for _, to := range s.To {
			m := outgoing{link: &e.links[to], data: s.Data}
			m.writeStaged(call, b, n)
		}
	case len(s.To) < multicastMin || !e.sendMulticast(call, s):
		for _, to := range s.To {
			e.links[to].writeInline(call, s.Data)
		}
	}
	return true
}

// wholeMessage returns the bytes of a message that has begun, if all of them, which are
// size, are in its cell or staging buffer.
func (l *link) wholeMessage(c *cell, k frameKind, size uint32) (p []byte, whole bool) {
	switch k {
	case inlineFrame:
		if size <= inlineMax {
			return c.body[:size:size], true
		}
	case pairFrame:
		if size <= pairMax && l.pair.has(c) {
			return c.pair().data[:size:size], true
		}
	case multicastFrame:
		if size <= multicastMax {
			return c.multicast().data[:size:size], true
		}
	case stagedFrame:
		if p := c.staged(); p.total == uint64(size) {
			return l.staged(p.buffer, size)
		}
	}
	return nil, false
}

// landFast does with a message what its receive says. A Combine that panics fails the
// endpoint, when it is unlocked.
func (e *Endpoint) landFast(r *transport.Recv, p []byte) {
	if r.Combine == nil {
		copy(r.Into, p)
		return
	}
	if len(p) == 0 {
		return
	}
	e.combining = true
	r.Combine(r.Into, r.Held, p)
	e.combining = false
}
