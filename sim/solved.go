package sim

import (
	"slices"
	"sort"
)

// solved is a program table whose times are known. Where messages wait, its messages are
// numbered as in queued, otherwise as in the program table.
type solved struct {
	*programTable
	*network
	*times

	names map[int32]string // of resources that the critical path waits for
	held  []int32          // a route, whose memory is used again
}

// numberOf returns the number of a message of the program table.
func (p *solved) numberOf(message int32) int32 {
	if p.queued != nil {
		return p.messages[message].to
	}
	return message
}

// sizeOf returns the size of a message with its flags.
func (p *solved) sizeOf(i int32) uint32 {
	if p.queued != nil {
		return p.queued[i].size
	}
	return p.messages[i].size
}

// endsOf returns the ranks of a message, and its steps there.
func (p *solved) endsOf(i int32) (of ends, sent, received int32) {
	message, recv := i, int32(0)
	if p.queued != nil {
		m := &p.queued[i]
		of, message, recv = m.ends, m.message, m.recv
	} else {
		recv = ^p.messages[i].to
		of.from = p.rankWith(message, firstSend)
		of.to = p.rankWith(recv, firstRecv)
	}
	return of, p.stepWith(message, of.from, firstSend), p.stepWith(recv, of.to, firstRecv)
}

func firstSend(s *step) int32 { return s.sends }
func firstRecv(s *step) int32 { return s.recvs }

// rankWith returns the rank that has a message or a receive.
func (p *solved) rankWith(i int32, first func(*step) int32) int32 {
	return int32(locate(i, p.programTable.ranks, func(rank int) int32 { return first(&p.steps[p.first[rank]]) }))
}

// stepWith returns the step of a rank that has a message or a receive.
func (p *solved) stepWith(i, rank int32, first func(*step) int32) int32 {
	lo, hi := p.first[rank], p.first[rank+1]
	return lo + int32(locate(i, int(hi-lo), func(n int) int32 { return first(&p.steps[lo+int32(n)]) }))
}

// rankOf returns the rank of a step.
func (p *solved) rankOf(step int32) int32 {
	return int32(locate(step, p.programTable.ranks, func(rank int) int32 { return p.first[rank] }))
}

// locate returns in which of n ranges, each of which begins where the one before ends, a
// number is. It is found at once where all are equally long.
func locate(i int32, n int, begin func(int) int32) int {
	first := begin(0)
	guess := int(int64(i-first) * int64(n) / int64(begin(n)-first))
	if begin(guess) <= i && i < begin(guess+1) {
		return guess
	}
	return sort.Search(n, func(k int) bool { return begin(k+1) > i })
}

// message returns a message, without its times unless they are recorded.
func (p *solved) message(i int32) Message {
	m := message{size: p.sizeOf(i)}
	of, sent, received := p.endsOf(i)
	from, to := of.from, of.to
	out := Message{
		Step: int(max(p.steps[sent].timelineStep, p.steps[received].timelineStep)), From: int(from), To: int(to),
		Words: p.words(&m), Hops: len(p.route(from, to)), Combine: m.combine(),
		SendStep: int(sent - p.first[from]), RecvStep: int(received - p.first[to]),
	}
	switch {
	case p.queued != nil:
		q := &p.queued[i]
		out.Ready, out.Start, out.End = q.start, q.start, q.finish
		if q.holder != notWaiting {
			out.Ready = q.ready
		}
	case p.start != nil:
		out.Ready, out.Start, out.End = p.start[i], p.start[i], p.finish[i]
	}
	return out
}

// cause returns the message that a step waited for last, or -1. For a step of
// copies alone, that is the one that let it begin.
func (p *solved) cause(step int32) int32 {
	for first := p.first[p.rankOf(step)]; ; step-- {
		lo, hi := p.sent(step)
		for message := lo; message < hi; message++ {
			if i := p.numberOf(message); p.sizeOf(i)&lastSent != 0 {
				return i
			}
		}
		lo, hi = p.received(step)
		for _, r := range p.recvs[lo:hi] {
			if i := p.numberOf(r.message()); p.sizeOf(i)&lastReceived != 0 {
				return i
			}
		}
		switch {
		case p.trigger != nil && p.trigger[step] >= 0:
			return p.trigger[step]
		case step == first:
			return -1
		}
	}
}

// begunBy returns the message that let a step begin, or -1.
func (p *solved) begunBy(step int32) int32 {
	switch {
	case p.trigger != nil:
		return p.trigger[step]
	case step == p.first[p.rankOf(step)]:
		return -1
	}
	return p.cause(step - 1)
}

// later returns the step of that end of a message which was ready last.
func (p *solved) later(i int32) int32 {
	_, sent, received := p.endsOf(i)
	if p.sizeOf(i)&senderLast != 0 {
		return sent
	}
	return received
}

// criticalPath follows the time of the last rank back to where it began.
func (p *solved) criticalPath() (legs []Leg) {
	slowest := 0
	ranks := p.times.ranks
	for r := range ranks {
		if ranks[r].end > ranks[slowest].end {
			slowest = r
		}
	}
	step := p.first[slowest+1] - 1
	if step < p.first[slowest] {
		return nil
	}
	if p.works != nil {
		return p.workPath(int32(slowest))
	}
	var path []int32
	for i := p.cause(step); i >= 0; i = p.preceding(i) {
		path = append(path, i)
	}
	if path == nil {
		return nil
	}
	slices.Reverse(path)
	legs = make([]Leg, len(path))
	for k, i := range path {
		leg := &legs[k]
		leg.Message = p.message(i)
		if leg.Waited = leg.Start - leg.Ready; leg.Waited > 0 {
			leg.WaitedFor = p.nameOf(p.waitedFor(&p.queued[i]))
		}
	}
	if p.queued == nil && p.start == nil {
		p.timePath(legs, path)
	}
	for k := range legs {
		next := ranks[slowest].end // when the leg after this one starts
		if k+1 < len(legs) {
			next = legs[k+1].Ready
			if legs[k+1].Waited > 0 {
				next = legs[k+1].Start
			}
		}
		legs[k].ComputeAfter = max(0, next-legs[k].End)
	}
	return legs
}

// nameOf returns what a report calls a resource. Many legs wait for the same.
func (p *solved) nameOf(resource int32) string {
	name, ok := p.names[resource]
	if !ok {
		name = p.resourceName(resource)
		p.names[resource] = name
	}
	return name
}

// workPath returns the critical path of messages that are work of processors. The times of a
// leg are those of the parts of its message that are on the path.
func (p *solved) workPath(slowest int32) (legs []Leg) {
	path := p.works.path(slowest)
	legs = make([]Leg, len(path))
	for k, part := range path {
		next := p.times.ranks[slowest].end
		if k+1 < len(path) {
			next = path[k+1].start
		}
		legs[k] = Leg{Message: p.message(part.message), ComputeAfter: max(0, next-part.end)}
		legs[k].Ready, legs[k].Start, legs[k].End = part.start, part.start, part.end
	}
	return legs
}

// preceding returns the message that let another one start, or -1: the one that
// held what it waited for, or that let the later of its ends begin its step.
func (p *solved) preceding(i int32) int32 {
	if p.queued != nil {
		if m := &p.queued[i]; m.holder != notWaiting && m.start > m.ready {
			return m.holder
		}
	}
	return p.begunBy(p.later(i))
}

// waitedFor returns the resource that a message waited for last, which its holder
// held. Of several, it is the one that the holder left last. Two messages that
// share a port do not ask for links at the same time.
func (p *solved) waitedFor(m *queuedMessage) int32 {
	holder := p.queued[m.holder].ends
	if !p.allPort {
		switch {
		case holder.to == m.to:
			return p.recvPort(m.to)
		case holder.from == m.from:
			return p.sendPort(m.from)
		}
	}
	p.held = append(p.held[:0], p.route(holder.from, holder.to)...)
	route := p.route(m.from, m.to)
	for _, link := range slices.Backward(p.held) {
		if slices.Contains(route, link) {
			return link
		}
	}
	panic("a message waited for another with which it shares nothing")
}

// timePath gives the messages of a path their times, where none waits: each is
// ready when that end is which was later, after it has combined what its step
// before received, of which the message before came last.
func (p *solved) timePath(legs []Leg, path []int32) {
	at := 0.0
	for k := range legs {
		m := &legs[k].Message
		step := p.later(path[k])
		if k > 0 {
			at = legs[k-1].End
			if words := p.combined(step - 1); words > 0 {
				at += p.combining(words)
			}
		}
		if p.before != nil && p.before[step] > 0 {
			at += p.combining(p.before[step])
		}
		if p.machine != nil {
			at += p.stepCost(p.network, step, p.rankOf(step))
		}
		m.Ready, m.Start = at, at
		of, sent, received := p.endsOf(path[k])
		m.End = at + p.messageTime(p.network, of, sent, received, m.Words, m.Hops)
	}
}

// combined returns the words that a step combines of what it receives.
func (p *solved) combined(step int32) (words int) {
	lo, hi := p.received(step)
	for _, r := range p.recvs[lo:hi] {
		if m := &p.messages[r.message()]; m.combine() {
			words += p.words(m)
		}
	}
	return words
}

// log returns every message, by step, sender, and index in its program.
func (p *solved) log(steps int) []Message {
	stepOf := p.timelineSteps()
	next := make([]int, steps+1) // per step: where its next message goes; first, the counts
	for _, step := range stepOf {
		next[step+1]++
	}
	for step := range steps {
		next[step+1] += next[step]
	}
	log := make([]Message, len(p.messages))
	for i, step := range stepOf {
		log[next[step]] = p.message(p.numberOf(int32(i)))
		next[step]++
	}
	return log
}

// timelineSteps returns the step of the timeline of every message: the first
// that both its ends have reached.
func (t *programTable) timelineSteps() []int32 {
	stepOf := make([]int32, len(t.messages))
	for n := range int32(len(t.steps) - 1) {
		reached := t.steps[n].timelineStep
		lo, hi := t.sent(n)
		for i := lo; i < hi; i++ {
			stepOf[i] = max(stepOf[i], reached)
		}
		lo, hi = t.received(n)
		for _, r := range t.recvs[lo:hi] {
			stepOf[r.message()] = max(stepOf[r.message()], reached)
		}
	}
	return stepOf
}
