package progress

import (
	"unsafe"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
)

// Stalls returns the operations that wait for other ranks. Unsent reports whether a
// peer has not taken a message of a step.
func (e *Engine) Stalls(unsent func(o *Op, peer int) bool) []transport.Stall {
	e.Lock()
	defer e.Unlock()
	if e.Err() != nil {
		return nil
	}
	var stalls []transport.Stall
	for _, o := range e.ops {
		switch {
		case o.over:
		case o.kind == stepOp:
			s := transport.Stall{Signature: o.Signature, Step: o.Index, Operation: o.address()}
			for peer := range e.Size {
				if o.FirstIncomplete(peer) != nil || unsent(o, peer) {
					s.Peers = append(s.Peers, peer)
				}
			}
			if s.Peers != nil {
				stalls = append(stalls, s)
			}
		case o.kind == probeOp:
			stalls = append(stalls, stallOf(o, "probe", o.number, &o.subject.pattern, o.subject.pattern.From))
		case o.kind == messageOp && o.subject.message.phase != committed: // otherwise both ranks are there
			m := o.subject.message
			message := "send"
			if m.phase == posted {
				message = "recv"
			}
			stalls = append(stalls, stallOf(o, message, m.number, &m.pattern, m.peer))
		}
	}
	return stalls
}

func stallOf(o *Op, message string, number uint64, p *match.Pattern, peer int) transport.Stall {
	s := transport.Stall{Signature: transport.Signature{Context: p.Context}, Message: message, Tag: p.Tag, Wait: number, Operation: o.address()}
	if peer >= 0 {
		s.Peers = []int{peer}
	}
	return s
}

// address returns the address of the operation, which is the first argument of Await in
// the stack of its goroutine.
func (o *Op) address() uintptr { return uintptr(unsafe.Pointer(o)) }

// HandleProbe takes a stall probe of a peer: the call in which the peer waits for this
// rank. The endpoint fails if this rank is in another call, or is waiting in an earlier one
// for the peer. Q has the messages from the peer.
func (e *Engine) HandleProbe(q *match.Queue, peer int, theirs match.Call) {
	s := e.StepIn(theirs.Context)
	switch {
	case s == nil:
	case s.Contradicts(&theirs),
		// What this rank waits for, the peer has not sent, and is past it.
		q.Posted(theirs.Context) != nil && q.FirstIn(theirs.Context) == nil && match.Before(s.Sequence, theirs.Sequence):
		e.FailMismatch(s, peer, theirs.Signature)
	}
}
