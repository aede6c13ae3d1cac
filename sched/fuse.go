package sched

// FusibleCopy returns which copy of the step only provides the held operand of the
// combine of receive k, or -1. Then the combine reads the source of the copy
// instead, as an operation of three operands, and the copy is not made: so it is executed.
func (s Step) FusibleCopy(k int) int {
	r := s.Recvs[k]
	if r.How == Replace || s.Ordered(k) {
		return -1
	}
	found := -1
	for i, c := range s.Copies {
		switch {
		case c.Dst == r.Dst && c.Into() == r.Blocks && c.How == Replace && found < 0:
			found = i
		case c.Dst == r.Dst && c.Into().Overlaps(r.Blocks), c.Src == r.Dst && c.Blocks.Overlaps(r.Blocks):
			return -1 // another copy writes or reads these blocks as well
		}
	}
	if found < 0 {
		return -1
	}
	c := s.Copies[found]
	for _, later := range s.Copies[found+1:] {
		if later.Dst == c.Src && later.Into().Overlaps(c.Blocks) {
			return -1
		}
	}
	for _, other := range s.Recvs {
		if other.Dst == c.Src && other.Blocks.Overlaps(c.Blocks) {
			return -1 // its message may arrive before the combine reads
		}
	}
	return found
}
