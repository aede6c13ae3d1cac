package sched

// Check proves the schedule right, or returns the [*Fault] that it finds, or several in
// [Faults]: those of steps by themselves, those of sends and receives that do not match,
// or those of results.
// It replays all ranks on symbols, and proves that
//
//   - every step is well formed: it stays within the blocks that its rank has,
//     never writes In, and never writes by a receive what it also sends;
//   - every send matches one receive of the same size, in order per pair;
//   - no ranks wait for each other in a circle, even when no send is buffered;
//   - no block is read before it was written;
//   - every block of every Out ends as exactly what the collective promises:
//     each contribution once, and in rank order unless the schedule is marked
//     Commutative;
//   - where several ranks end with the same combination, all made it by the
//     same expression, so that they hold the same bits;
//   - no rank leaves a barrier before every rank has arrived.
//
// Time and memory are linear in the blocks that the schedule moves, and in P
// times Blocks; for a barrier, in P times P plus the messages. A schedule that
// would take more than [DefaultMemory] is refused: see [Schedule.CheckWithin].
func (s *Schedule) Check() error { return s.CheckWithin(DefaultMemory) }

// CheckWithin is [Schedule.Check] with another limit of memory, in bytes. A
// schedule that would take more is refused with a [*TooLargeError], before the
// memory is allocated; its size is an estimate, see [Schedule.CheckMemory].
func (s *Schedule) CheckWithin(limit int64) error {
	if err := s.validate(); err != nil {
		return err
	}
	buffers := s.replayMemory()
	if buffers > float64(limit) {
		return &TooLargeError{"check", s.P, buffers, limit}
	}
	t, err := s.timeline("check", limit-int64(buffers), limit)
	if err != nil {
		return err
	}
	r := t.Replay()
	r.limit = limit
	r.free = (limit - int64(buffers)) / perSpan
	for range t.Steps() {
		if err := r.Step(); err != nil {
			return err
		}
	}
	if s.Collective == Barrier {
		return s.located(s.checkArrivals(r))
	}
	faults := s.checkOut(r)
	s.placeLost(t, faults)
	return s.located(faults.err())
}

// checkOut compares every Out with what the collective promises.
func (s *Schedule) checkOut(r *Replay) Faults {
	var made []uint64 // per block: how the first rank made it
	if s.Collective == AllReduce {
		made = make([]uint64, s.Blocks)
	}
	var faults Faults
	for rank := range s.P {
		extent := s.Extent(Out, rank)
		for b := extent.Lo; b < extent.Hi; b++ {
			got, want := r.at(rank, Out, b), s.Expected(rank, b)
			switch {
			case !want.is(got):
				if faults.takes(-1, b) {
					faults = faults.atEnd(rank, -1, b, "out holds %v, want %v", got, want)
				}
			case made == nil:
			case made[b] == 0:
				made[b] = got.expr
			case made[b] != got.expr && faults.takes(-1, b):
				faults = faults.atEnd(rank, -1, b, "out holds %v, but combined in another way than on another rank, so their bits may differ", got)
			}
		}
	}
	return faults
}

// checkArrivals proves that every rank, at its end, knows of every arrival.
func (s *Schedule) checkArrivals(r *Replay) error {
	var faults Faults
	for rank := range s.P {
		for other := range s.P {
			if !r.Knows(rank, other) && faults.takes(other, -1) {
				faults = faults.atEnd(rank, other, -1, "leaves the barrier without knowing that rank %d has arrived", other)
			}
		}
	}
	return faults.err()
}

// is reports whether v is the expected value.
func (e Expected) is(v *Value) bool {
	if e.Lo == e.Hi {
		return !v.Defined()
	}
	return v.Defined() && v.rest == nil && v.block == int32(e.Block) && v.first == span{int32(e.Lo), int32(e.Hi)}
}

// String writes e as [Value.String] does.
func (e Expected) String() string {
	if e.Lo == e.Hi {
		return "nothing"
	}
	return Value{block: int32(e.Block), first: span{int32(e.Lo), int32(e.Hi)}}.String()
}
