package tcp

import (
	"slices"
	"time"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
	"github.com/chorale-go/chorale/transport/internal/progress"
)

// A sendBuffer is the half of a link that writes.
type sendBuffer struct {
	controls []byte              // frames without contents, which go before the next one
	queue    []outgoing          // messages that are not completely written
	current  int                 // the one in queue whose frame is being written; -1 for none
	held     map[uint32]struct{} // contexts in which the peer takes nothing now
	ready    bool                // the peer has asked for a message, or resumed a context
	broken   bool                // nothing can be written any more
	full     bool                // the stream took less than it was offered
	dropped  bool                // the message of the current frame was dropped
	head     []byte              // what is not written of the current frame: what lies in buf,
	body     []byte              // and what lies in the caller's memory
	buf      []byte
	spare    []byte // memory of frames that are written
}

// An outgoing is a message to a peer.
type outgoing struct {
	op     *progress.Op          // of a message of a step
	send   *progress.PendingSend // of the contents of a rendezvous message
	data   []byte                // the message; if there is neither op nor send, whole frames
	sent   int                   // bytes that frames have taken
	begun  bool
	frames bool
}

// pending reports whether something is to be written that the peer takes.
func (s *sendBuffer) pending() bool {
	return !s.broken && (len(s.head)+len(s.body) > 0 || len(s.controls) > 0 || s.next() >= 0)
}

// next returns the first message of the queue that is not held, or -1.
func (s *sendBuffer) next() int {
	if len(s.held) > 0 {
		return slices.IndexFunc(s.queue, func(m outgoing) bool {
			if m.op == nil {
				return true
			}
			_, held := s.held[m.op.Context]
			return !held
		})
	}
	if len(s.queue) > 0 {
		return 0
	}
	return -1
}

// copies returns the bytes of copies of tagged messages that are not written.
func (s *sendBuffer) copies() (n int) {
	for i := range s.queue {
		if s.queue[i].frames {
			n += len(s.queue[i].data)
		}
	}
	if s.current < 0 { // what was begun when nothing else was to be written
		n += len(s.body)
	}
	return n
}

// hold notes that the peer takes nothing in a context, and resume that it does again.
func (s *sendBuffer) hold(context uint32) {
	if s.held == nil {
		s.held = map[uint32]struct{}{}
	}
	s.held[context] = struct{}{}
}

func (s *sendBuffer) resume(context uint32) {
	delete(s.held, context)
	s.ready = true
}

// start posts every receive and sends what the sockets take.
func (e *Endpoint) start(o *progress.Op, step *transport.Step) {
	o.Start(o, match.Call{Signature: step.Signature}, step.Recvs)
	o.Index = step.Index
	o.Add(len(step.Recvs) + 1)
	for i := range o.Recvs {
		l := e.dialed(o.Recvs[i].From)
		l.in.queue.Post(&o.Recvs[i])
		e.recheck(l)
	}
	short := sendsShort(step)
	for i := range step.Sends {
		o.Add(len(step.Sends[i].To))
		for _, to := range step.Sends[i].To {
			l := e.dialed(to)
			if short {
				l.countStep()
			}
			l.out.queue = append(l.out.queue, outgoing{op: o, data: step.Sends[i].Data})
		}
	}
	for i := range step.Sends {
		for _, to := range step.Sends[i].To {
			if o.Over() {
				return
			}
			e.links[to].push()
		}
	}
	for _, l := range e.links { // a message that has come may belong to no call of this rank
		if l != nil && (l.in.headUnexpected || l.in.queue.First() != nil) {
			e.recheck(l)
		}
	}
	o.Complete(1)
}

// listenEvery is how long a rank that only sends to a peer may go without reading what
// the peer says. An empty read takes a fifth of what writing a short message does.
const listenEvery = 50 * time.Microsecond

// push begins to write what is queued. If nothing has come from the peer since the
// last time, and the last look was listenEvery ago, it reads first: a rank that only
// sends would never learn that the peer does not receive, or holds the context.
func (l *link) push() {
	if l.err == nil && l.phase == up {
		if len(l.out.queue) == 0 && !l.out.pending() {
			return
		}
		if l.in.queue.Idle() && !l.in.fresh && l.listens() {
			if l.in.headUnexpected {
				l.in.headUnexpected = false
				l.parse()
			}
			l.receive()
		}
		l.in.fresh = false
	}
	l.failWaiters()
	if !l.e.engine.Failed() {
		l.flush()
	}
	if l.out.pending() || len(l.out.queue) > 0 {
		l.e.watch(l)
	}
}

// listens reports whether the last look at what the peer says was long ago, and notes
// this one.
func (l *link) listens() bool {
	now := time.Now()
	if now.Sub(l.in.looked) < listenEvery {
		return false
	}
	l.in.looked = now
	return true
}

// flush writes what the stream takes. It leaves a message after one frame: the owner
// reads before the next one, since the peer may hold the message's context.
func (l *link) flush() {
	s := &l.out
	for l.phase == up && s.pending() {
		if len(s.head)+len(s.body) == 0 {
			s.nextFrame(l.frameMax())
		}
		n, err := l.stream.write(s.head, s.body)
		if n > 0 {
			l.e.polls.progressed++
			k := min(n, len(s.head))
			s.head, s.body = s.head[k:], s.body[n-k:]
		}
		s.full = err == errAgain
		switch {
		case s.full:
			return
		case err != nil:
			l.broken(err)
			return
		case len(s.head)+len(s.body) == 0 && !l.frameDone():
			return
		}
	}
	l.taggedDone()
}

// frameMax returns how many bytes of a message the next frame may have. Ranks that run at the
// same time and exchange long messages read between the frames of their own: what is under way
// stays in cache then, and neither finds its socket full and has to sleep.
func (l *link) frameMax() int {
	switch {
	case len(l.out.held) > 0:
		return heldMax
	case !l.e.processors.Oversubscribed && (!l.in.queue.Idle() || l.expectsTagged()):
		return exchangeMax
	}
	return bodyMax
}

// nextFrame begins the next frame of the message that comes next, with at most so many bytes
// of it. A short body is copied behind its header, a long one stays where it is.
func (s *sendBuffer) nextFrame(most int) {
	if len(s.controls) > 0 {
		s.head, s.controls, s.current = append(s.buf[:0], s.controls...), s.controls[:0], -1
		return
	}
	s.current = s.next()
	m := &s.queue[s.current]
	if m.frames {
		s.head, m.sent, m.begun = m.data, len(m.data), true
		return
	}
	h := header{kind: chunkFrame, body: min(len(m.data)-m.sent, most), total: len(m.data)}
	call := ""
	if m.send != nil {
		h.kind, h.sequence = fragmentFrame, m.send.Number
	} else {
		h.context, h.sequence = m.op.Context, m.op.Sequence
		if !m.begun {
			call = m.op.Signature.Call
			h.kind, h.text = messageFrame, len(call)
		}
	}
	m.begun = true
	s.head = append(h.append(s.buf[:0]), call...)
	s.body = m.data[m.sent : m.sent+h.body]
	m.sent += h.body
	if h.body <= copyMax {
		s.head, s.body = append(s.head, s.body...), nil
	}
}

// frameDone notes that a frame is written, and reports whether its message is.
func (l *link) frameDone() bool {
	s := &l.out
	if l.notice.queued {
		l.noticeDone()
		return true
	}
	i := s.current
	s.current = -1
	if i < 0 {
		s.dropped = false
		return true
	}
	m := s.queue[i]
	if m.sent < len(m.data) {
		return false
	}
	s.queue = slices.Delete(s.queue, i, i+1)
	switch {
	case m.frames:
		if cap(m.data) <= 2*burstBytesMax {
			s.spare = m.data
		}
	case m.op != nil:
		m.op.Complete(1)
	case m.send != nil:
		m.send.Complete()
	}
	return true
}

// broken ends a link to which nothing can be written any more. What the peer has sent
// before it went is taken first, whether or not it is expected yet: messages, and maybe
// a termination notice.
func (l *link) broken(err error) {
	if l.out.broken {
		return
	}
	l.out.broken = true
	l.in.drains, l.in.headUnexpected = true, false
	l.parse()
	l.receive()
	if l.err == nil {
		l.lost(err)
	}
}
