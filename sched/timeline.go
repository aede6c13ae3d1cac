package sched

import (
	"errors"
	"math"
)

// A Message is a send and the receive that it matches. Ranks and steps are
// counted from 0.
type Message struct {
	Step     int // of the timeline: the first in which both ends have finished their earlier steps
	From, To int
	SendStep int // the step of the sender's program
	Send     int // which of that step's sends
	Dest     int // which of that send's destinations
	RecvStep int // the step of the receiver's program
	Recv     int // which of that step's receives
	Src      Buffer
	Blocks   Range // read from Src
	Dst      Buffer
	At       int // the first block written in Dst
	How      Combine
}

// Into returns the range of Dst that m writes.
func (m Message) Into() Range { return Range{m.At, m.At + m.Blocks.Len()} }

// A RankCopy is a copy, the rank that does it, and its step.
type RankCopy struct {
	Step      int // of the timeline: the first in which the rank has finished its earlier steps
	Rank      int
	LocalStep int // the step of the rank's program
	Copy
}

// A Timeline is the programs of all ranks on one scale of steps. A message
// belongs to the first step in which both its ends have finished their earlier
// steps, as if every step took the same time and no send were buffered.
type Timeline struct {
	s        *Schedule
	copies   []RankCopy // by rank, and order in the program
	messages []message  // by sender, and order in the program

	// The copies by step, rank, and order in the program; the messages by step,
	// receiver, and order in the program. Those of step i begin where those of
	// step i-1 end.
	copyOrder, messageOrder []int32
	copyEnd, messageEnd     []int
}

// Steps returns the number of steps.
func (t *Timeline) Steps() int { return len(t.messageEnd) }

// MessageCount returns the number of messages of all steps.
func (t *Timeline) MessageCount() int { return len(t.messages) }

// Copies returns the copies of a step, by rank and in the order of its program.
// They come before the step's messages.
func (t *Timeline) Copies(step int) []RankCopy {
	order := ofStep(t.copyOrder, t.copyEnd, step)
	out := make([]RankCopy, len(order))
	for i, k := range order {
		out[i] = t.copies[k]
	}
	return out
}

// Messages returns the messages of a step, by receiver and in the order in which
// its program lists them. All of them read what their buffers hold when the
// step's copies are done.
func (t *Timeline) Messages(step int) []Message {
	order := ofStep(t.messageOrder, t.messageEnd, step)
	out := make([]Message, len(order))
	for i, k := range order {
		out[i] = t.messages[k].export()
	}
	return out
}

// ofStep returns the part of a list that belongs to a step.
func ofStep(list []int32, ends []int, step int) []int32 {
	begin := 0
	if step > 0 {
		begin = ends[step-1]
	}
	return list[begin:ends[step]]
}

// message is a Message in half the space: a ring of 1024 ranks has a million.
type message struct {
	step                       int32
	from, sendStep, send, dest int32
	to, recvStep, recv         int32
	lo, hi, at                 int32
	src, dst                   Buffer
	how                        Combine
	ordered                    bool // see Step.Ordered
	present                    int8 // how many of its two ends have entered their steps
	delivered                  bool
}

func (m *message) export() Message {
	return Message{
		Step: int(m.step), From: int(m.from), To: int(m.to),
		SendStep: int(m.sendStep), Send: int(m.send), Dest: int(m.dest), RecvStep: int(m.recvStep), Recv: int(m.recv),
		Src: m.src, Blocks: Range{int(m.lo), int(m.hi)}, Dst: m.dst, At: int(m.at), How: m.how,
	}
}

// Timeline matches the programs of all ranks with each other. An error is a
// [*Fault], or several in [Faults], that say why they do not fit together: a step is not well formed, a
// send has no receive or a receive no send, a message has the wrong size, or
// ranks wait for each other in a circle. Timeline does not look at what the
// messages carry: see [Schedule.Check].
//
// Time is linear in the number of sends, receives and copies, but for a sort of
// each rank's receives by sender; memory is about 200 bytes for each message and
// copy. A schedule that would take more than [DefaultMemory] is refused: see
// [Schedule.TimelineWithin].
func (s *Schedule) Timeline() (*Timeline, error) { return s.TimelineWithin(DefaultMemory) }

// TimelineWithin is [Schedule.Timeline] with another limit of memory, in bytes.
// A schedule that would take more is refused with a [*TooLargeError], before the
// memory is allocated; its size is an estimate, see [Schedule.TimelineMemory].
func (s *Schedule) TimelineWithin(limit int64) (*Timeline, error) {
	return s.timeline("follow", limit, limit)
}

// timeline makes a timeline that takes no more bytes than free, which is what a
// limit leaves for it.
func (s *Schedule) timeline(doing string, free, limit int64) (*Timeline, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	size := s.Size()
	need := size.memory(s.P)
	if need > float64(free) || max(size.Messages, size.Copies) > maxEntries {
		return nil, &TooLargeError{doing, s.P, need + float64(limit-free), limit}
	}
	b := timelineBuilder{s: s, first: make([]int, s.P+1), ready: make([]int32, s.P), current: make([]int, s.P)}
	b.messages, b.recvs, b.copies = room[message](size.Messages), room[recv](size.Messages), room[RankCopy](size.Copies)
	if err := b.collect(free); err != nil {
		if errors.Is(err, ErrTooLarge) {
			return nil, &TooLargeError{doing, s.P, math.Inf(1), limit}
		}
		return nil, s.located(err)
	}
	if err := b.match(); err != nil {
		return nil, s.located(err)
	}
	if err := b.run(); err != nil {
		return nil, s.located(err)
	}
	return b.timeline(), nil
}
