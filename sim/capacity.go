package sim

// This file has how many short messages may be under way from one rank to another: the
// capacity of a [Machine].

// A pair is one rank that sends to another.
type pair struct {
	underWay int     // short messages
	waiting  []int32 // those that wait for one of these to arrive, first come first
}

// counts reports whether a message counts among those of the machine's capacity.
func (s *processing) counts(i int32) bool {
	return s.machine.Capacity > 0 && s.eager(i) && !s.apart(s.queued[i].ends)
}

// hasRoom reports whether a message may begin, of those that count. If not, it waits until
// another one of its pair has arrived.
func (s *processing) hasRoom(i int32) bool {
	e := s.queued[i].ends
	p := s.pairs[e]
	if p == nil {
		p = new(pair)
		s.pairs[e] = p
	}
	if p.underWay == s.machine.Capacity {
		p.waiting = append(p.waiting, i)
		return false
	}
	p.underWay++
	return true
}

// makeRoom lets the next message of a pair begin, of which one has arrived.
func (s *processing) makeRoom(e ends, by int32) {
	p := s.pairs[e]
	if len(p.waiting) == 0 {
		p.underWay--
		return
	}
	next := p.waiting[0]
	p.waiting = p.waiting[1:]
	s.requestSend(next, by)
}
