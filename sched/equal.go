package sched

import "slices"

// Equal reports whether s and o are the same schedule: the same collective and
// numbers, and for every rank the same program.
func (s *Schedule) Equal(o *Schedule) bool {
	if s.Collective != o.Collective || s.Algorithm != o.Algorithm || s.P != o.P || s.Root != o.Root ||
		s.Blocks != o.Blocks || s.Scratch != o.Scratch || s.Commutative != o.Commutative || s.Uneven != o.Uneven ||
		s.EqualBlocks != o.EqualBlocks {
		return false
	}
	var reused, other Builder
	for rank := range s.P {
		if !s.Make(&reused, rank).Equal(o.Make(&other, rank)) {
			return false
		}
	}
	return true
}

// Equal reports whether p and o have the same steps.
func (p Program) Equal(o Program) bool { return slices.EqualFunc(p, o, Step.Equal) }

// Equal reports whether s and o have the same copies, sends and receives in
// the same order.
func (s Step) Equal(o Step) bool {
	return slices.Equal(s.Copies, o.Copies) && slices.EqualFunc(s.Sends, o.Sends, Send.Equal) && slices.Equal(s.Recvs, o.Recvs)
}

// Equal reports whether s and o send the same blocks to the same ranks.
func (s Send) Equal(o Send) bool {
	return s.Src == o.Src && s.Blocks == o.Blocks && slices.Equal(s.To, o.To)
}
