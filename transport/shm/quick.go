package shm

import "github.com/chorale-go/chorale/transport"

const (
	// quickMost is how long a message is at most that is sent and taken at once.
	quickMost = pieceLen
	// quickLooks is how often quick looks in vain before it leaves the waiting to
	// others, who do it better: a message takes less.
	quickLooks = 100
)

// quick does a step of short messages, or the beginning of one, while nothing else
// is in progress. It sends all, and takes what comes in the order in which the
// step lists it, as long as it is what is due and comes soon: then there is
// nothing to note. It leaves in step what is left to do, and reports whether that
// is nothing, or the endpoint has failed.
func (e *Endpoint) quick(step *transport.Step) bool {
	if len(e.ops) > 0 || e.partings || e.unposted || e.seekers > 0 {
		return false
	}
	messages := 0
	for i := range step.Sends {
		messages += len(step.Sends[i].To)
	}
	for i := range step.Sends {
		s := &step.Sends[i]
		if len(s.Data) > quickMost {
			return false
		}
		for _, to := range s.To {
			if l := &e.links[to]; l.err != nil || !l.roomFor(uint32(messages)) {
				return false
			}
		}
	}
	for i := range step.Recvs {
		r := &step.Recvs[i]
		if len(r.Into) > quickMost {
			return false
		}
		if l := &e.links[r.From]; l.err != nil || len(l.aside)+len(l.flows) > 0 {
			return false
		}
	}
	v := label{step.Signature.Context, step.Signature.Sequence, e.register.hash(step.Signature.Call)}
	for i := range step.Sends {
		if !e.sendQuickly(&step.Sends[i], v) {
			step.Sends = step.Sends[i:]
			return false
		}
	}
	if e.tellAll(); e.partings {
		e.seePartings()
		if e.mourn(step, quickMost); e.err != nil {
			return true
		}
	}
	step.Sends = nil
	looks := quickLooks
	if e.crowded || !e.spins() {
		looks = 1
	}
	for len(step.Recvs) > 0 {
		r := &step.Recvs[0]
		l := &e.links[r.From]
		s, k := l.next()
		switch {
		case s == nil:
			if looks--; looks <= 0 {
				return false
			}
			continue
		case !k.begins() || s.context != v.context || s.sequence != v.sequence || uint32(s.call) != v.call || int(s.size) != len(r.Into):
			return false
		}
		p, whole := l.wholeOf(s, k)
		if !whole {
			return false
		}
		e.landQuickly(r, p)
		l.blocked = false
		switch k {
		case cast:
			l.takeCast()
		case data:
			l.takeLine()
		default:
			l.take()
		}
		step.Recvs = step.Recvs[1:]
	}
	return true
}

// sendQuickly writes a message for which there is room in the lanes. It returns
// false if there is no box for it.
func (e *Endpoint) sendQuickly(s *transport.Send, v label) bool {
	switch {
	case len(s.Data) > inlineMax:
		b := e.freeBox(false)
		if b == noBox {
			return false
		}
		n := e.fill(b, s.Data)
		for _, to := range s.To {
			m := sending{link: &e.links[to], data: s.Data}
			m.boxed(v, b, n)
		}
	case len(s.To) < castMin || !e.cast(v, s):
		for _, to := range s.To {
			e.links[to].line(v, s.Data)
		}
	}
	return true
}

// wholeOf returns the bytes of a message that has begun, if all of them are in its
// slot or box.
func (l *link) wholeOf(s *slot, k kind) (p []byte, whole bool) {
	switch k {
	case data:
		if s.size <= inlineMax {
			return s.body[:s.size:s.size], true
		}
	case cast:
		return s.castBytes(), true
	case boxed:
		at := s.parcel()
		if at.total == uint64(s.size) && at.box < uint32(l.e.seg.boxes) && int(s.size) <= l.e.seg.boxLen {
			return l.e.seg.box(l.peer, int(at.box))[:s.size:s.size], true
		}
	}
	return nil, false
}

// landQuickly does what the receive says with a message.
func (e *Endpoint) landQuickly(r *transport.Recv, p []byte) {
	if r.Combine == nil {
		copy(r.Into, p)
		return
	}
	if len(p) == 0 {
		return
	}
	returned := false
	defer func() {
		if !returned {
			e.fail(errPanicked)
		}
	}()
	r.Combine(r.Into, r.Held, p)
	returned = true
}
