package sim

import (
	"slices"
	"sort"
)

// A played score is one whose times are known.
type played struct {
	*score
	*network
	*times
	sync bool
	meet []int32 // per message: its receive
}

// stepOfSend and stepOfRecv return the step of a message at its two ends, in
// time log of the number of steps.
func (p *played) stepOfSend(message int32) int32 {
	return p.last(func(s *step) bool { return s.sends <= message })
}

func (p *played) stepOfRecv(message int32) int32 {
	recv := p.meet[message]
	return p.last(func(s *step) bool { return s.recvs <= recv })
}

// last returns the last step of which something holds that holds of all before.
func (p *played) last(holds func(*step) bool) int32 {
	return int32(sort.Search(len(p.steps), func(i int) bool { return !holds(&p.steps[i]) }) - 1)
}

// reached returns when a step began, and the message that let it begin, or -1.
func (p *played) reached(step int32) (at float64, by int32) {
	if p.sync {
		return p.begin[step], p.waker[step]
	}
	by = -1
	if _, first := slices.BinarySearch(p.first, step); !first {
		at, by = p.steps[step-1].end, p.steps[step-1].cause
	}
	if p.before != nil {
		at += p.model.Top * float64(p.before[step])
	}
	return at, by
}

// message returns one, and the message before it that let its ends come, or -1.
func (p *played) message(i int32) (m Message, by int32) {
	sendStep, recvStep := p.stepOfSend(i), p.stepOfRecv(i)
	sent, bySender := p.reached(sendStep)
	received, by := p.reached(recvStep)
	if sent >= received {
		by = bySender
	}
	it := &p.messages[i]
	hops := len(p.route(it.from, it.to))
	m = Message{
		Step: int(it.round - 1), From: int(it.from), To: int(it.to),
		Words: p.words(it), Hops: hops, Combine: it.combine(),
		Ready:    max(sent, received),
		SendStep: int(sendStep - p.first[it.from]), RecvStep: int(recvStep - p.first[it.to]),
	}
	m.Start, m.End = m.Ready, m.Ready+p.duration(m.Words, hops)
	if p.start != nil {
		m.Start, m.End = p.start[i], p.finish[i]
	}
	if p.lane != nil && p.lane[i] < 0 {
		m.Ready = m.Start // but for rounding it is
	}
	return m, by
}

// path follows the time of the last rank back to where it began.
func (p *played) path() (legs []Leg) {
	slowest := 0
	for r := range p.stands {
		if p.stands[r].did.End > p.stands[slowest].did.End {
			slowest = r
		}
	}
	step := p.first[slowest+1] - 1
	if step < p.first[slowest] {
		return nil
	}
	next := p.stands[slowest].did.End // when the leg after the one at hand starts
	for i := p.steps[step].cause; i >= 0; {
		m, by := p.message(i)
		leg := Leg{Message: m, Waited: m.Start - m.Ready, After: max(0, next-m.End)}
		next = m.Ready
		if leg.Waited > 0 && p.lane != nil && p.lane[i] >= 0 {
			leg.For = p.laneName(p.lane[i])
			by, next = p.holder[i], m.Start
		}
		legs = append(legs, leg)
		i = by
	}
	slices.Reverse(legs)
	return legs
}
