//go:build mpi

package mpi

import (
	"slices"
	"unsafe"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
	"github.com/chorale-go/chorale/transport/internal/progress"
)

const (
	// postedMax is how many frames and pieces to one peer are with MPI at a time. The
	// others wait, so that a peer that computes does not take all requests.
	postedMax = 8
	// reserve is how many requests frames and pieces to peers leave to what arrives.
	reserve = piecesMax + arrivalsMax
)

// A sendSide is the half of a link that sends.
type sendSide struct {
	queue    []outgoing // frames and pieces that MPI does not have yet
	posted   int        // those that it has
	sources  []*source  // messages of which the peer takes pieces
	last     uint32     // the number of the last message of a step that was announced
	answered uint32     // CTS of the peer that were answered
	frames   uint32     // frames that were made
	unsent   int        // bytes of copies of tagged messages that are not sent
}

// An outgoing is a frame, or a piece of a message.
type outgoing struct {
	link      *link
	frame     *frame
	source    *source
	offset, n int // of the piece
	slot      int
}

// A source is a message that the peer takes in pieces.
type source struct {
	link   *link
	number uint32
	data   []byte
	asked  int                   // bytes that the peer has asked for
	done   int                   // bytes that are sent
	op     *progress.Op          // of a message of a step
	tagged *progress.PendingSend // of a tagged message
}

// A frame is memory of C with the bytes of a frame.
type frame struct {
	buf      []byte
	n        int          // bytes of the frame
	index    uint32       // its number on the link
	op       *progress.Op // of a message of a step, which is complete when the frame is sent
	detached bool         // no operation waits for the frame
	unsent   int          // bytes that count as unsent
}

// The sizes of frames: most are short.
var frameSizes = [...]int{1 << 10, frameMax}

// newFrame returns a frame with a header, a text, and room for a body.
func (l *link) newFrame(h header, text string, body int) (f *frame, room []byte) {
	e := l.e
	h.text = len(text)
	n := headerLen + len(text)
	if h.kind.hasBody() {
		n = bodyAt(h.text) + body
	}
	class := 0
	if n > frameSizes[0] {
		class = 1
	}
	if i := len(e.spare[class]) - 1; i >= 0 {
		f, e.spare[class] = e.spare[class][i], e.spare[class][:i]
	} else {
		f = &frame{buf: allocate(frameSizes[class])}
	}
	f.n, f.index = n, l.out.frames
	l.out.frames++
	h.put(f.buf)
	copy(f.buf[headerLen:], text)
	return f, f.buf[n-body : n]
}

// recycle keeps the memory of a frame that is sent.
func (e *Endpoint) recycle(f *frame) {
	class := 0
	if len(f.buf) > frameSizes[0] {
		class = 1
	}
	*f = frame{buf: f.buf}
	if len(e.spare[class]) < postedMax {
		e.spare[class] = append(e.spare[class], f)
	} else {
		free(f.buf)
	}
}

// post sends a frame or a piece behind all that is queued.
func (l *link) post(o outgoing) {
	o.link = l
	if len(l.out.queue) > 0 || !l.hasRoom() {
		if len(l.out.queue) == 0 {
			l.e.backlog = append(l.e.backlog, l)
		}
		l.out.queue = append(l.out.queue, o)
		return
	}
	o.begin()
}

func (l *link) hasRoom() bool {
	return l.out.posted < postedMax && len(l.e.requests.free) > reserve
}

// begin gives a frame or a piece to MPI.
func (o outgoing) begin() {
	e := o.link.e
	index := e.requests.take()
	r := &e.requests.requests[index]
	p, n, tag := uintptr(0), o.n, pieceTag+o.slot
	if o.frame != nil {
		p, n, tag = uintptr(unsafe.Pointer(unsafe.SliceData(o.frame.buf))), o.frame.n, frameTag
	} else {
		p = r.pin(o.source.data[o.offset:])
	}
	done, err := e.comm.send(index, p, n, o.link.peer, tag)
	if done || err != nil {
		e.requests.release(index)
		e.fault(err)
		o.sent()
		return
	}
	r.out = o
	e.requests.sending++
	o.link.out.posted++
}

// sent notes that MPI has let go of a frame or a piece.
func (o outgoing) sent() {
	if o.frame == nil {
		s := o.source
		if s.done += o.n; s.done == len(s.data) {
			s.finish()
		}
		return
	}
	f := o.frame
	if f.op != nil {
		f.op.Complete(1)
		o.link.recheckEnding()
	}
	o.link.forget(f)
	o.link.e.recycle(f)
}

// forget no longer counts a frame that no operation waits for.
func (l *link) forget(f *frame) {
	l.out.unsent -= f.unsent
	f.unsent = 0
	if !f.detached {
		return
	}
	f.detached = false
	if l.e.detached--; l.e.detached == 0 {
		l.e.engine.Flushed()
	}
}

// backlogShrinks ends the wait of a rank whose part in the job has ended, if MPI has all
// frames now.
func (e *Endpoint) backlogShrinks() {
	if e.noticed && len(e.backlog) == 0 {
		e.engine.Flushed()
	}
}

// finish completes a message of which all pieces are sent.
func (s *source) finish() {
	l := s.link
	l.out.sources = slices.DeleteFunc(l.out.sources, func(t *source) bool { return t == s })
	l.recheckEnding()
	switch {
	case s.op != nil:
		s.op.Complete(1)
	case s.tagged != nil:
		s.tagged.Complete()
	}
}

// postBacklog gives to MPI what has waited for a request.
func (e *Endpoint) postBacklog() {
	kept := e.backlog[:0]
	for _, l := range e.backlog {
		for len(l.out.queue) > 0 && l.hasRoom() {
			o := l.out.queue[0]
			l.out.queue = slices.Delete(l.out.queue, 0, 1)
			o.begin()
		}
		if len(l.out.queue) > 0 {
			kept = append(kept, l)
		}
	}
	clear(e.backlog[len(kept):])
	e.backlog = kept
	e.backlogShrinks()
}

// control sends a frame without contents, for which no operation waits.
func (l *link) control(h header) {
	if l.err == nil && !l.e.engine.Failed() {
		l.detach(h, "", nil)
	}
}

// detach sends a frame for which no operation waits.
func (l *link) detach(h header, text string, body []byte) {
	f, room := l.newFrame(h, text, len(body))
	copy(room, body)
	f.detached = true
	if h.kind == eagerFrame {
		f.unsent = len(body) + transport.MessageCost
		l.out.unsent += f.unsent
	}
	l.e.detached++
	l.post(outgoing{frame: f})
	if f.detached && !l.e.engine.Failed() {
		l.e.engine.StartFlusher()
	}
}

// start posts every receive and begins every send.
func (e *Endpoint) start(o *progress.Op, step *transport.Step) {
	o.Start(o, match.Call{Signature: step.Signature}, step.Recvs)
	o.Index = step.Index
	o.Add(len(step.Recvs) + 1)
	for i := range o.Recvs {
		l := e.link(o.Recvs[i].From)
		l.in.queue.Post(&o.Recvs[i])
	}
	for i := range step.Sends {
		o.Add(len(step.Sends[i].To))
		for _, to := range step.Sends[i].To {
			l := e.link(to)
			if err := l.gone(); err != nil {
				e.engine.Fail(err)
			} else {
				l.sendStep(o, step.Sends[i].Data)
			}
			if o.Over() {
				return
			}
		}
	}
	for i := range o.Recvs {
		if l := e.link(o.Recvs[i].From); l.gone() != nil {
			e.recheck(l)
		}
	}
	if e.unexpected { // a message that has come may belong to this step, or to no call of this rank
		e.unexpected = false
		for _, l := range e.links {
			if l != nil && l.in.queue.First() != nil {
				e.unexpected = true
				e.recheck(l)
			}
		}
	}
	e.settle()
	if len(step.Recvs) == 0 && !o.Over() { // a rank that only sends must learn, too, what its peers say
		e.pollOnce(1)
	}
	o.Complete(1)
}

// sendStep begins to send a message of a step.
func (l *link) sendStep(o *progress.Op, data []byte) {
	h := header{kind: messageFrame, context: o.Context, sequence: o.Sequence, total: len(data)}
	if len(data) <= stepEager && l.credits.Use(len(data)) {
		f, room := l.newFrame(h, o.Signature.Call, len(data))
		copy(room, data)
		f.op = o
		l.post(outgoing{frame: f})
		return
	}
	l.out.last++
	h.kind, h.number = announceFrame, l.out.last
	l.out.sources = append(l.out.sources, &source{link: l, number: h.number, data: data, op: o})
	f, _ := l.newFrame(h, o.Signature.Call, 0)
	l.post(outgoing{frame: f})
}

// sendsSteps reports whether a message of a step is not sent.
func (l *link) sendsSteps() bool {
	return slices.ContainsFunc(l.out.sources, func(s *source) bool { return s.op != nil }) ||
		l.frames(func(f *frame) bool { return f.op != nil })
}

// sendsFor reports whether a message of a step is not sent.
func (l *link) sendsFor(o *progress.Op) bool {
	return slices.ContainsFunc(l.out.sources, func(s *source) bool { return s.op == o }) ||
		l.frames(func(f *frame) bool { return f.op == o })
}

// frames reports whether one of the frames that are not sent is one that is asked for.
func (l *link) frames(is func(f *frame) bool) bool {
	if l.out.posted > 0 {
		for i := range l.e.requests.requests {
			if r := &l.e.requests.requests[i]; r.out.link == l && r.out.frame != nil && is(r.out.frame) {
				return true
			}
		}
	}
	return slices.ContainsFunc(l.out.queue, func(m outgoing) bool { return m.frame != nil && is(m.frame) })
}

// disown drops the messages of steps of an operation that is over. What the peer has
// asked for is sent.
func (l *link) disown(of func(o *progress.Op) bool) {
	l.frames(func(f *frame) bool {
		if f.op != nil && of(f.op) {
			f.op = nil
		}
		return false
	})
	l.out.sources = slices.DeleteFunc(l.out.sources, func(s *source) bool {
		if s.op == nil || !of(s.op) {
			return false
		}
		s.op = nil
		return true
	})
}

// pieces reports whether pieces of messages wait for a request.
func (s *sendSide) pieces() bool {
	return slices.ContainsFunc(s.queue, func(m outgoing) bool { return m.source != nil })
}

// dropUnsent drops the frames that MPI does not have yet, because the peer has gone. It
// may still wait for the pieces. Frames that MPI has are not waited for.
func (l *link) dropUnsent() {
	l.dropQueued(func(m *outgoing) bool { return m.frame != nil })
	for i := range l.e.requests.requests {
		if r := &l.e.requests.requests[i]; r.out.link == l && r.out.frame != nil {
			l.forget(r.out.frame)
		}
	}
}

// dropQueued drops what waits for a request and for which drop is true.
func (l *link) dropQueued(drop func(m *outgoing) bool) {
	if len(l.out.queue) == 0 {
		return
	}
	l.out.queue = slices.DeleteFunc(l.out.queue, func(m outgoing) bool {
		if !drop(&m) {
			return false
		}
		if m.frame != nil {
			l.forget(m.frame)
			l.e.recycle(m.frame)
		}
		return true
	})
	if len(l.out.queue) == 0 {
		l.e.backlog = slices.DeleteFunc(l.e.backlog, func(other *link) bool { return other == l })
		l.e.backlogShrinks()
	}
}
