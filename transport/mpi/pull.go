//go:build mpi

package mpi

import (
	"slices"

	"github.com/chorale-go/chorale/transport/internal/match"
)

// A pull takes a message that a peer has announced, in pieces.
type pull struct {
	link    *link
	kind    frameKind // of its CTS
	number  uint32    // of the message
	recv    *match.Recv
	tagged  *match.Tagged // if it is a tagged message
	size    int           // bytes of the message
	asked   int           // bytes that the peer was asked for
	last    bool          // that is all of them
	pieces  []*piece      // on their way, in order
	dropped bool          // nobody waits for the message any more
}

// A piece is a part of a message, on its way here.
type piece struct {
	pull     *pull
	slot     int
	index    int // of its request
	order    uint32
	buf      []byte // where it goes
	staged   bool   // from there, it is combined
	complete bool
}

// A pullSet has the pulls in progress.
type pullSet struct {
	pulls  []*pull
	slots  []int    // tags of pieces that are not in use
	staged [][]byte // buffers of combineMax bytes that are not in use
}

// window is how many pieces of a message are on their way at a time.
const window = 3

func (s *pullSet) init() {
	for slot := range piecesMax {
		s.slots = append(s.slots, slot)
	}
}

// steps reports whether a step waits for a message of the peer.
func (s *pullSet) steps(l *link) bool {
	return slices.ContainsFunc(s.pulls, func(p *pull) bool { return p.link == l && !p.dropped && p.kind == pullFrame })
}

// begin begins to take a message. An empty one of a step is at once complete, and its
// sender is told. That of an empty tagged message may withdraw it: it is asked for.
func (s *pullSet) begin(p *pull) {
	if p.recv != nil {
		p.size = len(p.recv.Into)
	} else {
		p.size = p.tagged.Size
	}
	if p.size == 0 && p.recv != nil {
		p.link.control(header{kind: discardFrame, number: p.number})
		p.finish()
		return
	}
	s.pulls = append(s.pulls, p)
	p.ask()
}

// ask asks for pieces of the message.
func (p *pull) ask() {
	l := p.link
	e := l.e
	for !p.dropped && !p.last && len(p.pieces) < window && len(e.pulls.slots) > 0 && len(e.requests.free) > arrivalsMax {
		q := &piece{pull: p, order: l.in.asked}
		n := min(p.size-p.asked, pieceMax)
		switch {
		case p.tagged != nil:
			q.buf = p.tagged.Data[p.asked:][:n]
		case p.recv.Combine == nil:
			q.buf = p.recv.Into[p.asked:][:n]
		default:
			elem := max(p.recv.Elem, 1)
			n = min(n, max(combineMax/elem, 1)*elem, combineMax)
			q.buf, q.staged = e.pulls.buffer()[:n], true
		}
		last := len(e.pulls.slots) - 1
		q.slot, e.pulls.slots = e.pulls.slots[last], e.pulls.slots[:last]
		q.index = e.requests.take()
		r := &e.requests.requests[q.index]
		done, err := e.comm.recv(q.index, r.pin(q.buf), n, l.peer, pieceTag+q.slot)
		if done || err != nil { // nothing was asked for
			e.requests.release(q.index)
			e.fault(err)
			return
		}
		r.piece = q
		p.pieces = append(p.pieces, q)
		l.in.asked++
		l.control(header{kind: p.kind, slot: q.slot, number: p.number, offset: p.asked, total: n, order: q.order})
		p.asked += n
		p.last = p.asked == p.size
	}
}

// buffer returns a buffer for a piece that is combined.
func (s *pullSet) buffer() (b []byte) {
	if n := len(s.staged) - 1; n >= 0 {
		b, s.staged = s.staged[n], s.staged[:n]
		return b
	}
	return make([]byte, combineMax)
}

// arrived notes that the piece is where it goes. Pieces are combined in order.
func (q *piece) arrived() {
	p := q.pull
	q.complete = true
	s := &p.link.e.pulls
	s.slots = append(s.slots, q.slot)
	for len(p.pieces) > 0 && p.pieces[0].complete {
		next := p.pieces[0]
		p.pieces = slices.Delete(p.pieces, 0, 1)
		p.put(next)
	}
	switch {
	case p.dropped:
		p.remove()
	case len(p.pieces) == 0 && p.last:
		p.remove()
		p.finish()
	}
	for _, p := range s.pulls { // the slot may serve another message
		p.ask()
	}
}

// put does with a piece what the receive says.
func (p *pull) put(q *piece) {
	if q.staged {
		defer func() { p.link.e.pulls.staged = append(p.link.e.pulls.staged, q.buf[:combineMax]) }()
	}
	switch {
	case p.dropped:
	case p.tagged != nil:
		p.tagged.Got += len(q.buf)
	case q.staged:
		p.recv.Put(q.buf)
	default:
		p.recv.Got += len(q.buf)
	}
}

// remove removes a pull of which no piece is on its way.
func (p *pull) remove() {
	s := &p.link.e.pulls
	if len(p.pieces) == 0 {
		s.pulls = slices.DeleteFunc(s.pulls, func(other *pull) bool { return other == p })
		p.link.recheckEnding()
	}
}

// finish completes a message that has arrived.
func (p *pull) finish() {
	if p.tagged != nil {
		p.tagged.Done(nil)
		return
	}
	p.link.in.queue.Complete(p.recv)
}

// drop notes that nobody waits for some messages any more. What is on its way is thrown
// away.
func (s *pullSet) drop(which func(p *pull) bool) {
	for _, p := range slices.Clone(s.pulls) {
		if which(p) {
			p.dropped, p.link.e.doom = true, true
			p.remove()
		}
	}
}

// cancel takes back the receives of pieces of a peer that will not come.
func (s *pullSet) cancel(l *link, never func(q *piece) bool) {
	if l.e.broken != nil {
		return
	}
	for _, p := range slices.Clone(s.pulls) {
		if p.link != l {
			continue
		}
		for _, q := range slices.Clone(p.pieces) {
			if q.complete || !never(q) {
				continue
			}
			p.dropped = true
			done, err := l.e.comm.cancel(q.index)
			l.e.fault(err)
			if done {
				l.e.requests.release(q.index)
				q.arrived()
			}
		}
	}
}
