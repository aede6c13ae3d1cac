package tcp

import "slices"

// A sender is the half of a link that writes.
type sender struct {
	notes []byte     // frames without contents, which go before the next one
	queue []outgoing // messages that are not written, the current one first
	head  []byte     // what is not written of the current frame: what lies in out,
	body  []byte     // and what lies in the caller's memory
	out   []byte
}

// An outgoing is a message to a peer.
type outgoing struct {
	op     *op
	data   []byte
	sent   int // bytes that frames have taken
	begun  bool
	as     kind   // of a letter: post, if data is whole frames, or part
	number uint32 // of the letter that this is part of
}

// pending reports whether something is to be written.
func (s *sender) pending() bool {
	return len(s.queue) > 0 || len(s.notes) > 0 || len(s.head)+len(s.body) > 0
}

// push begins to write what is queued. It looks first whether the peer has
// something to say if it has said nothing since the last time: a rank that only
// sends would never learn that nobody reads.
func (l *link) push() {
	if l.err == nil && l.phase == up {
		if !l.pending() {
			return
		}
		if len(l.posted) == 0 && !l.fresh {
			l.receive()
		}
		l.fresh = false
	}
	l.fate()
	if l.e.err == nil {
		l.flush()
	}
	if l.pending() {
		l.e.watchOver(l)
	}
}

// flush writes what the stream takes.
func (l *link) flush() {
	for l.phase == up && l.pending() {
		if len(l.head)+len(l.body) == 0 {
			l.nextFrame()
		}
		n, err := l.stream.write(l.head, l.body)
		if n > 0 {
			l.e.moved++
			k := min(n, len(l.head))
			l.head, l.body = l.head[k:], l.body[n-k:]
		}
		switch {
		case err == errAgain:
			return
		case err != nil:
			l.broken(err)
			return
		case len(l.head)+len(l.body) == 0:
			l.frameDone()
		}
	}
	l.carried()
}

// nextFrame begins the next frame of the message that comes next. A small body
// is copied behind its header, a large one stays where it is.
func (l *link) nextFrame() {
	if len(l.notes) > 0 {
		l.head, l.notes = append(l.out[:0], l.notes...), l.notes[:0]
		return
	}
	m := &l.queue[0]
	if m.as == post {
		l.head, m.sent, m.begun = m.data, len(m.data), true
		return
	}
	sig := &m.op.sig
	h := header{
		kind:     more,
		body:     min(len(m.data)-m.sent, bodyMax),
		context:  sig.Context,
		sequence: sig.Sequence,
		total:    len(m.data),
	}
	switch {
	case m.as == part:
		h.kind, h.sequence, m.begun = part, m.number, true
	case !m.begun:
		h.kind, h.text, m.begun = data, len(sig.Call), true
	}
	l.head = h.append(l.out[:0])
	if h.kind == data {
		l.head = append(l.head, sig.Call...)
	}
	l.body = m.data[m.sent : m.sent+h.body]
	m.sent += h.body
	if h.body <= copyMax {
		l.head, l.body = append(l.head, l.body...), nil
	}
}

// frameDone notes that a frame is written.
func (l *link) frameDone() {
	switch {
	case l.unsaid:
		l.hush()
	case len(l.queue) > 0 && l.queue[0].begun && l.queue[0].sent == len(l.queue[0].data):
		o := l.queue[0].op
		l.queue = slices.Delete(l.queue, 0, 1)
		if o != nil {
			o.part()
		}
	}
}

// ask tells a peer that has said nothing for a while in which call this rank
// waits for it. Ranks that only wait for each other learn so that they have
// called different things.
func (l *link) ask() {
	if l.heard {
		l.heard = false
		return
	}
	for _, r := range l.posted {
		if l.curious() && !r.asked {
			r.asked = true
			sig := &r.op.sig
			h := header{kind: ask, text: len(sig.Call), context: sig.Context, sequence: sig.Sequence}
			l.head = append(h.append(l.out[:0]), sig.Call...)
			l.flush()
		}
	}
}

// curious reports whether there is something to ask. There is not where a
// message to the peer is on its way, which says as much.
func (l *link) curious() bool {
	return l.phase == up && l.err == nil && !l.pending() && l.to == nil &&
		slices.ContainsFunc(l.posted, func(r *recv) bool { return !r.asked })
}

// broken ends a link to which nothing can be written any more. The peer may
// have said why before it went.
func (l *link) broken(err error) {
	l.drops, l.blocked = true, false
	l.parse()
	l.receive()
	if l.err == nil {
		l.gone(err)
	}
}
