package sched

// A watched block is a block of a rank's Out that ends with a wrong value.
type watched struct {
	fault *Fault
	want  Expected
	right bool   // after the steps so far
	lost  *Fault // where it was right for the last time; nil if it never was
}

// placeLost places the faults of blocks which were right at some time in the step that wrote
// to them then. It replays the schedule again. A fault that several ranks share stays at
// their ends, and so does one of a block that never was right.
func (s *Schedule) placeLost(t *Timeline, faults Faults) {
	var blocks []watched
	for _, f := range faults {
		if f.Ranks == nil && f.Step < 0 && f.Block >= 0 {
			blocks = append(blocks, watched{fault: f, want: s.Expected(f.Rank, f.Block)})
		}
	}
	if len(blocks) == 0 {
		return
	}
	r := t.Replay()
	for step := range t.Steps() {
		if r.Step() != nil {
			return // which the first replay would have found
		}
		for i := range blocks {
			b := &blocks[i]
			right := b.want.is(r.at(b.fault.Rank, Out, b.fault.Block))
			if b.right && !right {
				b.lost = r.writer(step, b.fault.Rank, b.fault.Block)
			}
			b.right = right
		}
	}
	for _, b := range blocks {
		if b.lost != nil {
			b.fault.Step, b.fault.Peer, b.fault.op = b.lost.Step, b.lost.Peer, b.lost.op
			b.fault.What = "replaces the right value, " + b.want.String() + ": at the end, " + b.fault.What
		}
	}
}

// writer returns where the last operation of a step of the timeline stands that writes to a
// block of a rank's Out.
func (r *Replay) writer(step, rank, block int) (at *Fault) {
	t := r.t
	for _, i := range ofStep(t.copyOrder, t.copyEnd, step) {
		c := &t.copies[i]
		if c.Rank == rank && c.Dst == Out && c.At <= block && block < c.At+c.Blocks.Len() {
			at = faultf(rank, c.LocalStep, -1, block, "").by(copyOp, r.copyIndex(int(i)))
		}
	}
	for _, i := range ofStep(t.messageOrder, t.messageEnd, step) {
		m := &t.messages[i]
		if int(m.to) == rank && m.dst == Out && int(m.at) <= block && block < int(m.at+m.hi-m.lo) {
			at = faultf(rank, int(m.recvStep), int(m.from), block, "").by(recvOp, int(m.recv))
		}
	}
	return at
}
