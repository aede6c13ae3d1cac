package sim

import (
	"slices"
	"sort"
)

// solved is a program table whose times are known.
type solved struct {
	*programTable
	*network
	*times
	sync   bool
	recvOf []int32 // per message: its receive
}

// stepOfSend and stepOfRecv return the step of a message at its two ends, in
// time proportional to the logarithm of the number of steps.
func (p *solved) stepOfSend(message int32) int32 {
	return p.lastStep(func(s *step) bool { return s.sends <= message })
}

func (p *solved) stepOfRecv(message int32) int32 {
	recv := p.recvOf[message]
	return p.lastStep(func(s *step) bool { return s.recvs <= recv })
}

// lastStep returns the last step for which holds is true. It must be true for
// all steps before.
func (p *solved) lastStep(holds func(*step) bool) int32 {
	return int32(sort.Search(len(p.steps), func(i int) bool { return !holds(&p.steps[i]) }) - 1)
}

// began returns when a step began, and the message that let it begin, or -1.
func (p *solved) began(step int32) (at float64, by int32) {
	if p.sync {
		return p.begin[step], p.trigger[step]
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

// message returns a message, and the message before it that let its ends become
// ready, or -1.
func (p *solved) message(i int32) (m Message, by int32) {
	sendStep, recvStep := p.stepOfSend(i), p.stepOfRecv(i)
	sent, bySender := p.began(sendStep)
	received, by := p.began(recvStep)
	if sent >= received {
		by = bySender
	}
	it := &p.messages[i]
	hops := len(p.route(it.from, it.to))
	m = Message{
		Step: int(it.timelineStep - 1), From: int(it.from), To: int(it.to),
		Words: p.words(it), Hops: hops, Combine: it.combine(),
		Ready:    max(sent, received),
		SendStep: int(sendStep - p.first[it.from]), RecvStep: int(recvStep - p.first[it.to]),
	}
	m.Start, m.End = m.Ready, m.Ready+p.duration(m.Words, hops)
	if p.start != nil {
		m.Start, m.End = p.start[i], p.finish[i]
	}
	if p.waitedFor != nil && p.waitedFor[i] < 0 {
		m.Ready = m.Start // equal but for rounding
	}
	return m, by
}

// criticalPath follows the time of the last rank back to where it began.
func (p *solved) criticalPath() (legs []Leg) {
	slowest := 0
	for r := range p.times.ranks {
		if p.times.ranks[r].total.End > p.times.ranks[slowest].total.End {
			slowest = r
		}
	}
	step := p.first[slowest+1] - 1
	if step < p.first[slowest] {
		return nil
	}
	next := p.times.ranks[slowest].total.End // when the leg after this one starts
	for i := p.steps[step].cause; i >= 0; {
		m, by := p.message(i)
		leg := Leg{Message: m, Waited: m.Start - m.Ready, ComputeAfter: max(0, next-m.End)}
		next = m.Ready
		if leg.Waited > 0 && p.waitedFor != nil && p.waitedFor[i] >= 0 {
			leg.WaitedFor = p.resourceName(p.waitedFor[i])
			by, next = p.holder[i], m.Start
		}
		legs = append(legs, leg)
		i = by
	}
	slices.Reverse(legs)
	return legs
}

// log returns every message, by step, sender, and index in its program.
func (p *solved) log(steps int) []Message {
	next := make([]int, steps+1) // per step: where its next message goes; first, the counts
	for i := range p.messages {
		next[p.messages[i].timelineStep]++ // 1 + the step
	}
	for step := range steps {
		next[step+1] += next[step]
	}
	log := make([]Message, len(p.messages))
	for i := range log {
		m, _ := p.message(int32(i))
		log[next[m.Step]] = m
		next[m.Step]++
	}
	return log
}
