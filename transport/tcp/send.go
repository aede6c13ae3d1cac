package tcp

import (
	"slices"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
	"github.com/chorale-go/chorale/transport/internal/progress"
)

// A sendBuffer is the half of a link that writes.
type sendBuffer struct {
	controls []byte     // frames without contents, which go before the next one
	queue    []outgoing // messages that are not completely written, the current one first
	head     []byte     // what is not written of the current frame: what lies in buf,
	body     []byte     // and what lies in the caller's memory
	buf      []byte
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

// pending reports whether something is to be written.
func (s *sendBuffer) pending() bool {
	return len(s.queue) > 0 || len(s.controls) > 0 || len(s.head)+len(s.body) > 0
}

// start posts every receive and sends what the sockets take.
func (e *Endpoint) start(o *progress.Op, step *transport.Step) {
	o.Start(o, match.Call{Signature: step.Signature}, step.Recvs)
	o.Add(len(step.Recvs) + 1)
	for i := range o.Recvs {
		l := e.dialed(o.Recvs[i].From)
		l.in.queue.Post(&o.Recvs[i])
		e.recheck(l)
	}
	for i := range step.Sends {
		o.Add(len(step.Sends[i].To))
		for _, to := range step.Sends[i].To {
			l := e.dialed(to)
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
	o.Complete(1)
}

// push begins to write what is queued. If nothing has come from the peer since the
// last time, it reads first: a rank that only sends would never learn that the peer
// does not receive.
func (l *link) push() {
	if l.err == nil && l.phase == up {
		if !l.out.pending() {
			return
		}
		if l.in.queue.Idle() && !l.in.fresh {
			l.receive()
		}
		l.in.fresh = false
	}
	l.failWaiters()
	if !l.e.engine.Failed() {
		l.flush()
	}
	if l.out.pending() {
		l.e.watch(l)
	}
}

// flush writes what the stream takes.
func (l *link) flush() {
	s := &l.out
	for l.phase == up && s.pending() {
		if len(s.head)+len(s.body) == 0 {
			s.nextFrame()
		}
		n, err := l.stream.write(s.head, s.body)
		if n > 0 {
			l.e.polls.progressed++
			k := min(n, len(s.head))
			s.head, s.body = s.head[k:], s.body[n-k:]
		}
		switch {
		case err == errAgain:
			return
		case err != nil:
			l.broken(err)
			return
		case len(s.head)+len(s.body) == 0:
			l.frameDone()
		}
	}
	l.taggedDone()
}

// nextFrame begins the next frame of the message that comes next. A short body is
// copied behind its header, a long one stays where it is.
func (s *sendBuffer) nextFrame() {
	if len(s.controls) > 0 {
		s.head, s.controls = append(s.buf[:0], s.controls...), s.controls[:0]
		return
	}
	m := &s.queue[0]
	if m.frames {
		s.head, m.sent, m.begun = m.data, len(m.data), true
		return
	}
	h := header{kind: chunkFrame, body: min(len(m.data)-m.sent, bodyMax), total: len(m.data)}
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

// frameDone notes that a frame is written.
func (l *link) frameDone() {
	s := &l.out
	switch {
	case l.notice.queued:
		l.noticeDone()
	case len(s.queue) > 0 && s.queue[0].begun && s.queue[0].sent == len(s.queue[0].data):
		m := s.queue[0]
		s.queue = slices.Delete(s.queue, 0, 1)
		switch {
		case m.op != nil:
			m.op.Complete(1)
		case m.send != nil:
			m.send.Complete()
		}
	}
}

// broken ends a link to which nothing can be written any more. The peer may have sent
// a termination notice before it went.
func (l *link) broken(err error) {
	l.in.drops, l.in.headUnexpected = true, false
	l.parse()
	l.receive()
	if l.err == nil {
		l.lost(err)
	}
}
