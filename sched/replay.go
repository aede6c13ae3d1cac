package sched

import (
	"errors"
	"math"
)

// A Replay carries out a schedule on symbols, one step of its timeline after
// another, and says what every rank holds in between. Use [Timeline.Replay] to
// make one.
//
// Its memory is P times Blocks plus Scratch [Value]s, or a bit for each pair of
// ranks where the schedule is a barrier.
type Replay struct {
	s            *Schedule
	t            *Timeline
	step         int     // the next one
	out, scratch []Value // rank by rank
	limit, free  int64   // of memory, in bytes; of that, what operands may still take, in spans

	// Of a barrier: the ranks whose arrival each rank knows of, words of bits
	// rank by rank; and the same when the rank began the step of its program whose
	// number is in entered. That step may take several steps of the timeline.
	words        int // per rank
	known, began []uint64
	entered      []int32
}

// Replay returns a replay that stands before the first step: every rank holds
// its In and nothing else, and knows of its own arrival alone.
func (t *Timeline) Replay() *Replay {
	s := t.s
	r := &Replay{s: s, t: t, limit: math.MaxInt64, free: math.MaxInt64}
	if s.Collective != Barrier {
		r.out, r.scratch = make([]Value, s.P*s.Blocks), make([]Value, s.P*s.Scratch)
		return r
	}
	r.words = (s.P + 63) / 64
	r.known, r.began, r.entered = make([]uint64, s.P*r.words), make([]uint64, s.P*r.words), make([]int32, s.P)
	for rank := range s.P {
		r.entered[rank] = -1
		r.known[rank*r.words+rank/64] = 1 << (rank % 64)
	}
	return r
}

// Step carries out the next step of the timeline, which must have one. It stops
// with a [*Fault] if the step reads what was never written or combines blocks
// that do not belong together. Time is linear in the blocks that the step
// moves; in a barrier, in the messages of the step times P/64.
func (r *Replay) Step() error {
	t, step := r.t, r.step
	r.step++
	messages := ofStep(t.messageOrder, t.messageEnd, step)
	if r.known != nil {
		r.spread(messages)
		return nil
	}
	for _, i := range ofStep(t.copyOrder, t.copyEnd, step) {
		if err := r.copy(int(i)); err != nil {
			return r.s.located(err)
		}
	}
	for _, i := range messages {
		if err := r.deliver(&t.messages[i]); err != nil {
			return r.s.located(err)
		}
	}
	return nil
}

// Value returns the content of a block of a rank's buffer, which must have it.
func (r *Replay) Value(rank int, b Buffer, block int) Value {
	if b == In {
		return input(rank, block)
	}
	return *r.at(rank, b, block)
}

// at returns where a block of Out or Scratch is kept.
func (r *Replay) at(rank int, b Buffer, block int) *Value {
	if b == Out {
		return &r.out[rank*r.s.Blocks+block]
	}
	return &r.scratch[rank*r.s.Scratch+block]
}

// Knows reports whether a rank of a barrier knows that another has arrived.
func (r *Replay) Knows(rank, other int) bool {
	return r.known != nil && r.known[rank*r.words+other/64]>>(other%64)&1 == 1
}

func (r *Replay) copy(n int) error {
	c := &r.t.copies[n]
	for i := range c.Blocks.Len() {
		v := r.Value(c.Rank, c.Src, c.Blocks.Lo+i)
		if !v.Defined() {
			return faultf(c.Rank, c.LocalStep, -1, c.Blocks.Lo+i, "copies from %v what was never written", c.Src).by(copyOp, r.copyIndex(n))
		}
		if err := r.write(r.at(c.Rank, c.Dst, c.At+i), v, c.How); err != nil {
			return placed(err, c.Rank, c.LocalStep, -1, c.At+i, operation{copyOp, r.copyIndex(n)})
		}
	}
	return nil
}

// copyIndex returns which copy of its step copy n is.
func (r *Replay) copyIndex(n int) (index int) {
	c := &r.t.copies[n]
	for n--; n >= 0 && r.t.copies[n].Rank == c.Rank && r.t.copies[n].LocalStep == c.LocalStep; n-- {
		index++
	}
	return index
}

// deliver carries out a message. The messages of a step need no snapshot of
// what they read: those of one rank belong to one step of its program, which
// never writes what it sends.
func (r *Replay) deliver(m *message) error {
	for i := range m.hi - m.lo {
		v := r.Value(int(m.from), m.src, int(m.lo+i))
		if !v.Defined() {
			return faultf(int(m.from), int(m.sendStep), int(m.to), int(m.lo+i), "sends from %v what was never written", m.src).by(sendOp, int(m.send))
		}
		if err := r.write(r.at(int(m.to), m.dst, int(m.at+i)), v, m.how); err != nil {
			return placed(err, int(m.to), int(m.recvStep), int(m.from), int(m.at+i), operation{recvOp, int(m.recv)})
		}
	}
	return nil
}

// placed returns a fault in a place, or err if that is none of the schedule.
func placed(err error, rank, step, peer, block int, op operation) error {
	if errors.Is(err, ErrTooLarge) {
		return err
	}
	return faultf(rank, step, peer, block, "%v", err).by(op.kind, op.index)
}

// write replaces the value at a block, or combines it with the incoming one.
func (r *Replay) write(at *Value, incoming Value, how Combine) (err error) {
	r.free += int64(len(at.rest))
	switch how {
	case Left:
		*at, err = combine(&incoming, at, r.s.Commutative)
	case Right:
		*at, err = combine(at, &incoming, r.s.Commutative)
	default:
		*at = incoming
	}
	r.free -= int64(len(at.rest))
	if r.free < 0 {
		return &TooLargeError{"check", r.s.P, math.Inf(1), r.limit}
	}
	return err
}

// spread passes on the barrier knowledge that each sender had when it began the step
// of its program: what it receives in that step may come after it has sent.
func (r *Replay) spread(messages []int32) {
	of := func(set []uint64, rank int32) []uint64 { return set[int(rank)*r.words : int(rank+1)*r.words] }
	enter := func(rank, step int32) {
		if r.entered[rank] != step {
			r.entered[rank] = step
			copy(of(r.began, rank), of(r.known, rank))
		}
	}
	for _, i := range messages {
		m := &r.t.messages[i]
		enter(m.from, m.sendStep)
		enter(m.to, m.recvStep)
	}
	for _, i := range messages {
		m := &r.t.messages[i]
		to := of(r.known, m.to)
		for w, bits := range of(r.began, m.from) {
			to[w] |= bits
		}
	}
}
