package progress

import "github.com/chorale-go/chorale/transport"

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
			s := transport.Stall{Signature: o.Signature}
			for peer := range e.Size {
				if o.FirstIncomplete(peer) != nil || unsent(o, peer) {
					s.Peers = append(s.Peers, peer)
				}
			}
			if s.Peers != nil {
				stalls = append(stalls, s)
			}
		case o.kind == receiveOp:
			p := &o.subject.pattern
			stalls = append(stalls, tagged(p.Context, p.Tag, p.From))
		case o.kind == transferOp:
			stalls = append(stalls, tagged(o.subject.pattern.Context, o.subject.pattern.Tag, o.subject.peer))
		}
	}
	return stalls
}

func tagged(context uint32, tag, peer int) transport.Stall {
	s := transport.Stall{Signature: transport.Signature{Context: context}, Tag: tag}
	if peer >= 0 {
		s.Peers = []int{peer}
	}
	return s
}
