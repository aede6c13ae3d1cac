package sched

// Check proves the schedule right, or returns the first [*Fault] that it finds.
// It replays all ranks on symbols, and proves that
//
//   - every step is well formed: it stays within the blocks that its rank has,
//     never writes In, and never writes by a receive what it also sends;
//   - every send meets one receive of the same size, in order per pair;
//   - nobody waits in a circle, even when no send is buffered;
//   - nothing is read before it was written;
//   - every block of every Out ends as exactly what the collective promises:
//     each contribution once, and in rank order unless the schedule is marked
//     Commutative;
//   - where several ranks end with the same combination, all made it by the
//     same expression, so that they hold the same bits;
//   - nobody leaves a barrier before everybody has come.
//
// Time and memory are linear in the blocks that the schedule moves, and in P
// times Blocks.
func (s *Schedule) Check() error {
	t, err := s.Timeline()
	if err != nil {
		return err
	}
	if s.Collective == Barrier {
		return s.checkBarrier(t)
	}
	r := replay{s: s, out: make([]value, s.P*s.Blocks), scratch: make([]value, s.P*s.Scratch)}
	for step := range t.Steps() {
		for _, i := range ofStep(t.copyOrder, t.copyEnd, step) {
			if err := r.copy(&t.copies[i]); err != nil {
				return err
			}
		}
		for _, i := range ofStep(t.messageOrder, t.messageEnd, step) {
			if err := r.deliver(&t.messages[i]); err != nil {
				return err
			}
		}
	}
	return r.finish()
}

// A replay is the memory of all ranks, on symbols.
type replay struct {
	s            *Schedule
	out, scratch []value // rank by rank
}

// held returns where the replay keeps a block.
func (r *replay) held(rank int, b Buffer, block int) *value {
	if b == Out {
		return &r.out[rank*r.s.Blocks+block]
	}
	return &r.scratch[rank*r.s.Scratch+block]
}

// read returns what a rank's buffer holds.
func (r *replay) read(rank int, b Buffer, block int) value {
	if b == In {
		return input(rank, block)
	}
	return *r.held(rank, b, block)
}

// write lands incoming on a block.
func (r *replay) write(at *value, incoming value, how Combine) (err error) {
	switch how {
	case Left:
		*at, err = combine(&incoming, at, r.s.Commutative)
	case Right:
		*at, err = combine(at, &incoming, r.s.Commutative)
	default:
		*at = incoming
	}
	return err
}

func (r *replay) copy(c *RankCopy) error {
	for i := range c.Blocks.Len() {
		v := r.read(c.Rank, c.Src, c.Blocks.Lo+i)
		if !v.defined() {
			return faultf(c.Rank, c.LocalStep, -1, c.Blocks.Lo+i, "copies from %v what was never written", c.Src)
		}
		if err := r.write(r.held(c.Rank, c.Dst, c.At+i), v, c.How); err != nil {
			return faultf(c.Rank, c.LocalStep, -1, c.At+i, "%v", err)
		}
	}
	return nil
}

// deliver carries out a message. Within a step no message reads what another
// writes: a rank's messages of one step belong to one step of its program.
func (r *replay) deliver(m *message) error {
	for i := range m.hi - m.lo {
		v := r.read(int(m.from), m.src, int(m.lo+i))
		if !v.defined() {
			return faultf(int(m.from), int(m.sendStep), int(m.to), int(m.lo+i), "sends from %v what was never written", m.src)
		}
		if err := r.write(r.held(int(m.to), m.dst, int(m.at+i)), v, m.how); err != nil {
			return faultf(int(m.to), int(m.recvStep), int(m.from), int(m.at+i), "%v", err)
		}
	}
	return nil
}

// finish compares every Out with what the collective promises.
func (r *replay) finish() error {
	s := r.s
	made := make(map[Expected]uint64)
	for rank := range s.P {
		extent := s.Extent(Out, rank)
		for b := extent.Lo; b < extent.Hi; b++ {
			got, want := r.held(rank, Out, b), s.Expected(rank, b)
			if !got.is(want) {
				return faultf(rank, -1, -1, b, "out holds %v, want %v", got, want)
			}
			if !s.Collective.Combines() {
				continue
			}
			if first, ok := made[want]; ok && got.expr != first {
				return faultf(rank, -1, -1, b, "out holds %v, but combined in another way than on another rank, so their bits may differ", got)
			}
			made[want] = got.expr
		}
	}
	return nil
}

// is reports whether v is what is wanted.
func (v *value) is(w Expected) bool {
	if w.Lo == w.Hi {
		return !v.defined()
	}
	return v.defined() && v.rest == nil && v.block == int32(w.Block) && v.first == span{int32(w.Lo), int32(w.Hi)}
}

func (w Expected) String() string {
	if w.Lo == w.Hi {
		return "nothing"
	}
	return value{block: int32(w.Block), first: span{int32(w.Lo), int32(w.Hi)}}.String()
}

// checkBarrier proves that each rank, at its end, has heard of all others'
// arrival. A message carries what its sender has heard when the step begins.
func (s *Schedule) checkBarrier(t *Timeline) error {
	words := (s.P + 63) / 64
	heard := make([]uint64, s.P*words)
	before := make([]uint64, s.P*words)
	of := func(set []uint64, rank int32) []uint64 { return set[int(rank)*words : int(rank+1)*words] }
	for rank := range s.P {
		heard[rank*words+rank/64] = 1 << (rank % 64)
	}
	for step := range t.Steps() {
		messages := ofStep(t.messageOrder, t.messageEnd, step)
		for _, i := range messages {
			from := t.messages[i].from
			copy(of(before, from), of(heard, from))
		}
		for _, i := range messages {
			m := &t.messages[i]
			to := of(heard, m.to)
			for w, bits := range of(before, m.from) {
				to[w] |= bits
			}
		}
	}
	for rank := range s.P {
		for other := range s.P {
			if heard[rank*words+other/64]>>(other%64)&1 == 0 {
				return faultf(rank, -1, other, -1, "leaves the barrier without having heard that rank %d has come", other)
			}
		}
	}
	return nil
}
