package match

import (
	"slices"

	"github.com/chorale-go/chorale/transport"
)

// A Step is the receiving half of an Exchange in progress.
type Step struct {
	Call
	Operation Operation
	Index     int // transport.Step.Index
	Recvs     []Recv
	first     int // the first receive that is not complete
}

// An Operation is the operation that a step belongs to.
type Operation interface {
	// Complete notes that n messages of the step are complete.
	Complete(n int)
	// Unblock polls the next message from a peer again, because a receive from it is no
	// longer held back by those before it.
	Unblock(peer int)
}

// A Recv is a receive of a step in progress.
type Recv struct {
	*transport.Recv
	Step     *Step
	Got      int  // bytes of the message that have been put
	HeldBack bool // Ordered, and a receive before it is not complete
	Probed   bool // tcp: a stall probe for the receive was sent

	done    bool
	partial []byte // the beginning of an element that continues in the next piece
}

// Start fills in the receives of a step. Recvs must not change before the step is
// over.
func (s *Step) Start(op Operation, call Call, recvs []transport.Recv) {
	n := len(recvs)
	s.Operation, s.Call, s.first = op, call, 0
	s.Recvs = slices.Grow(s.Recvs[:0], n)[:n]
	for i := range recvs {
		r := &s.Recvs[i]
		r.Recv, r.Step, r.Got, r.Probed, r.done = &recvs[i], s, 0, false, false
		r.HeldBack = r.Ordered && i > 0
		r.partial = r.partial[:0]
	}
}

// Reset forgets the step, but for memory that the next one uses.
func (s *Step) Reset() {
	for i := range s.Recvs {
		r := &s.Recvs[i]
		r.Recv, r.Step = nil, nil
	}
	s.Operation, s.Call = nil, Call{}
	s.Recvs = s.Recvs[:0]
}

// FirstIncomplete returns the first receive from a peer whose message is not complete, or nil.
func (s *Step) FirstIncomplete(peer int) *Recv {
	for i := range s.Recvs {
		if r := &s.Recvs[i]; !r.done && r.From == peer {
			return r
		}
	}
	return nil
}

// complete notes that the receive has its whole message, and lets an ordered one
// that follows go ahead.
func (r *Recv) complete() {
	s := r.Step
	r.done = true
	for s.first < len(s.Recvs) && s.Recvs[s.first].done {
		s.first++
	}
	if s.first < len(s.Recvs) {
		if next := &s.Recvs[s.first]; next.HeldBack {
			next.HeldBack = false
			s.Operation.Unblock(next.From)
		}
	}
	s.Operation.Complete(1)
}

// Land does with a whole message what a receive says.
func Land(r *transport.Recv, message []byte) {
	if r.Combine == nil {
		transport.Copy(r.Into, message, r.Temporal)
	} else if len(message) > 0 {
		r.Combine(r.Into, r.Held, message)
	}
}

// Put does with the next bytes of the message what the receive says. Elements may
// continue from one piece to the next; where they are combined, p has the alignment
// of what it continues.
func (r *Recv) Put(p []byte) {
	offset := r.Got
	r.Got += len(p)
	if r.Combine == nil {
		copy(r.Into[offset:], p)
		return
	}
	elem := max(r.Elem, 1)
	if n := len(r.partial); n > 0 {
		n = min(elem-n, len(p))
		r.partial = append(r.partial, p[:n]...)
		offset, p = offset+n, p[n:]
		if len(r.partial) < elem && r.Got < len(r.Into) {
			return
		}
		r.combine(offset-len(r.partial), r.partial)
		r.partial = r.partial[:0]
	}
	if n := len(p) % elem; n > 0 && r.Got < len(r.Into) {
		r.partial = append(r.partial, p[len(p)-n:]...)
		p = p[:len(p)-n]
	}
	r.combine(offset, p)
}

// combine combines whole elements.
func (r *Recv) combine(offset int, p []byte) {
	if end := offset + len(p); len(p) > 0 {
		r.Combine(r.Into[offset:end:end], r.Held[offset:end:end], p)
	}
}
