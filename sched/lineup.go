package sched

import (
	"cmp"
	"slices"
)

// A lineup is a timeline in the making.
type lineup struct {
	s        *Schedule
	first    []int // rank r's steps are numbered first[r] to first[r+1] among all ranks' steps
	copies   []RankCopy
	messages []message // by sender, and order in its program
	recvs    []recv    // by receiver, and order in its program
	steps    []stepEnd // one more than there are steps: where each begins

	ready []int32 // per rank: the step, counted over all ranks, in which its current step can begin
	at    []int   // per rank: the current step of its program
}

// recv is a receive that looks for its message.
type recv struct {
	from, to, step, index int32
	lo, hi                int32
	dst                   Buffer
	how                   Combine
	inTurn                bool
	message               int32
}

type stepEnd struct {
	copies, messages, recvs int32 // where the step begins in each list
	pending                 int32 // its messages that are not done
}

// collect lists what all programs do, and looks at each step by itself.
func (l *lineup) collect() error {
	for rank := range l.s.P {
		l.first[rank] = len(l.steps)
		for i, step := range l.s.Program(rank) {
			if err := l.s.checkStep(rank, i, step); err != nil {
				return err
			}
			l.add(rank, i, step)
		}
	}
	l.first[l.s.P] = len(l.steps)
	l.steps = append(l.steps, l.here())
	return nil
}

func (l *lineup) here() stepEnd {
	return stepEnd{copies: int32(len(l.copies)), messages: int32(len(l.messages)), recvs: int32(len(l.recvs))}
}

func (l *lineup) add(rank, i int, step Step) {
	l.steps = append(l.steps, l.here())
	for _, c := range step.Copies {
		l.copies = append(l.copies, RankCopy{Rank: rank, LocalStep: i, Copy: c})
	}
	for k, send := range step.Sends {
		for c, to := range send.To {
			l.messages = append(l.messages, message{
				from: int32(rank), sendStep: int32(i), send: int32(k), copyof: int32(c), to: int32(to),
				src: send.Src, lo: int32(send.Blocks.Lo), hi: int32(send.Blocks.Hi),
			})
		}
	}
	for k, r := range step.Recvs {
		l.recvs = append(l.recvs, recv{
			from: int32(r.From), to: int32(rank), step: int32(i), index: int32(k),
			dst: r.Dst, lo: int32(r.Blocks.Lo), hi: int32(r.Blocks.Hi), how: r.How,
			inTurn: step.Ordered(k),
		})
	}
}

// Ordered reports whether receive k of the step must wait for those listed
// before it, because it writes a block that one of them writes too.
func (s Step) Ordered(k int) bool {
	r := s.Recvs[k]
	for _, earlier := range s.Recvs[:k] {
		if earlier.Dst == r.Dst && earlier.Blocks.Overlaps(r.Blocks) {
			return true
		}
	}
	return false
}

// match gives every receive its message: the k-th receive of rank b from rank a
// takes the k-th message that a sends to b.
func (l *lineup) match() error {
	byReceiver := make([]int, l.s.P+1)
	for i := range l.messages {
		byReceiver[l.messages[i].to+1]++
	}
	for r := range l.s.P {
		byReceiver[r+1] += byReceiver[r]
	}
	sent := make([]int32, len(l.messages))
	next := slices.Clone(byReceiver)
	for i := range l.messages {
		to := l.messages[i].to
		sent[next[to]] = int32(i)
		next[to]++
	}
	var order []int32
	for rank := range l.s.P {
		lo, hi := l.steps[l.first[rank]].recvs, l.steps[l.first[rank+1]].recvs
		order = order[:0]
		for i := lo; i < hi; i++ {
			order = append(order, i)
		}
		slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(l.recvs[a].from, l.recvs[b].from) })
		if err := l.matchRank(order, sent[byReceiver[rank]:byReceiver[rank+1]]); err != nil {
			return err
		}
	}
	return nil
}

// matchRank pairs the receives of one rank with the messages sent to it, both
// ordered by sender.
func (l *lineup) matchRank(recvs, sent []int32) error {
	for len(recvs) > 0 || len(sent) > 0 {
		switch {
		case len(recvs) == 0 || len(sent) > 0 && l.messages[sent[0]].from < l.recvs[recvs[0]].from:
			m := &l.messages[sent[0]]
			return faultf(int(m.from), int(m.sendStep), int(m.to), -1, "sends a message that rank %d never receives", m.to)
		case len(sent) == 0 || l.recvs[recvs[0]].from < l.messages[sent[0]].from:
			r := &l.recvs[recvs[0]]
			return faultf(int(r.to), int(r.step), int(r.from), -1, "waits for a message that rank %d never sends", r.from)
		}
		r, m := &l.recvs[recvs[0]], &l.messages[sent[0]]
		m.recvStep, m.recv, m.dst, m.at, m.how, m.inTurn = r.step, r.index, r.dst, r.lo, r.how, r.inTurn
		r.message = sent[0]
		if m.hi-m.lo != r.hi-r.lo {
			return faultf(int(m.to), int(m.recvStep), int(m.from), int(m.at),
				"receives %d blocks where rank %d sends %d (its step %d)", r.hi-r.lo, m.from, m.hi-m.lo, m.sendStep)
		}
		if err := l.s.sameLengths(int(m.from), int(m.to), m.src, int(m.lo), int(m.hi-m.lo), m.dst, int(m.at)); err != nil {
			return faultf(int(m.to), int(m.recvStep), int(m.from), int(m.at), "%v", err)
		}
		recvs, sent = recvs[1:], sent[1:]
	}
	return nil
}

// run lets all ranks go through their programs with no send buffered, and
// numbers the steps.
func (l *lineup) run() error {
	for i := range len(l.steps) - 1 {
		b, e := l.steps[i], l.steps[i+1]
		l.steps[i].pending = (e.messages - b.messages) + (e.recvs - b.recvs)
	}
	var work []int
	for rank := range l.s.P {
		work = append(work, rank)
	}
	for len(work) > 0 {
		rank := work[len(work)-1]
		work = l.enter(rank, work[:len(work)-1])
	}
	for rank := range l.s.P {
		if l.at[rank] < l.first[rank+1]-l.first[rank] {
			return l.deadlock(rank)
		}
	}
	return nil
}

// enter brings a rank into its current step, past steps of copies alone, and
// completes what its arrival completes. Ranks whose step is done are added to
// work.
func (l *lineup) enter(rank int, work []int) []int {
	n := l.first[rank] + l.at[rank]
	for n < l.first[rank+1] {
		l.place(n, rank)
		if l.steps[n].pending > 0 {
			break
		}
		n++
		l.at[rank]++
	}
	if n == l.first[rank+1] {
		return work
	}
	b, e := l.steps[n], l.steps[n+1]
	for i := b.messages; i < e.messages; i++ {
		l.messages[i].arrived++
		work = l.complete(&l.messages[i], work)
	}
	for i := b.recvs; i < e.recvs; i++ {
		m := &l.messages[l.recvs[i].message]
		m.arrived++
		work = l.complete(m, work)
	}
	return work
}

// place numbers the copies of step n.
func (l *lineup) place(n, rank int) {
	for i := l.steps[n].copies; i < l.steps[n+1].copies; i++ {
		l.copies[i].Step = int(l.ready[rank])
	}
}

// complete delivers m if both its ends have come and its turn has.
func (l *lineup) complete(m *message, work []int) []int {
	if m.done || m.arrived < 2 {
		return work
	}
	m.step = max(l.ready[m.from], l.ready[m.to])
	n := l.first[m.to] + int(m.recvStep)
	if m.inTurn {
		for i := l.steps[n].recvs; i < l.steps[n].recvs+m.recv; i++ {
			earlier := &l.messages[l.recvs[i].message]
			if !earlier.done {
				return work
			}
			m.step = max(m.step, earlier.step)
		}
	}
	m.done = true
	work = l.leave(int(m.from), int(m.sendStep), work)
	work = l.leave(int(m.to), int(m.recvStep), work)
	for i := l.steps[n].recvs + m.recv + 1; i < l.steps[n+1].recvs; i++ {
		if next := &l.messages[l.recvs[i].message]; next.inTurn {
			work = l.complete(next, work)
		}
	}
	return work
}

// leave takes one message off a rank's step; after the last the rank goes on.
func (l *lineup) leave(rank, step int, work []int) []int {
	n := l.first[rank] + step
	l.steps[n].pending--
	if l.steps[n].pending > 0 {
		return work
	}
	last := l.ready[rank]
	for i := l.steps[n].messages; i < l.steps[n+1].messages; i++ {
		last = max(last, l.messages[i].step)
	}
	for i := l.steps[n].recvs; i < l.steps[n+1].recvs; i++ {
		last = max(last, l.messages[l.recvs[i].message].step)
	}
	l.ready[rank] = last + 1
	l.at[rank]++
	return append(work, rank)
}

// deadlock says who waits for whom, from a rank that is stuck to a rank that
// the chain comes back to.
func (l *lineup) deadlock(rank int) error {
	first := rank
	var chain []int
	for !slices.Contains(chain, rank) {
		chain = append(chain, rank)
		rank = l.waitsFor(rank)
	}
	text := ""
	for _, r := range append(chain, rank) {
		if text != "" {
			text += ", which waits for "
		}
		text += rankInStep(r, l.at[r])
	}
	return faultf(first, l.at[first], l.waitsFor(first), -1, "deadlock: %s", text)
}

// waitsFor returns the peer of the first message that holds up a stuck rank.
func (l *lineup) waitsFor(rank int) int {
	n := l.first[rank] + l.at[rank]
	for i := l.steps[n].recvs; i < l.steps[n+1].recvs; i++ {
		m := &l.messages[l.recvs[i].message]
		if !m.done && m.arrived < 2 {
			return int(m.from)
		}
	}
	for i := l.steps[n].messages; i < l.steps[n+1].messages; i++ {
		if m := &l.messages[i]; !m.done {
			return int(m.to)
		}
	}
	return rank
}

// timeline orders copies and messages by step.
func (l *lineup) timeline() *Timeline {
	steps := 0
	for i := range l.messages {
		steps = max(steps, int(l.messages[i].step)+1)
	}
	for i := range l.copies {
		steps = max(steps, l.copies[i].Step+1)
	}
	t := &Timeline{
		copies:       l.copies,
		messages:     l.messages,
		copyOrder:    make([]int32, len(l.copies)),
		messageOrder: make([]int32, len(l.messages)),
		copyEnd:      make([]int, steps),
		messageEnd:   make([]int, steps),
	}
	for i := range l.copies {
		t.copyEnd[l.copies[i].Step]++
	}
	for i := range l.messages {
		t.messageEnd[l.messages[i].step]++
	}
	// The counts become beginnings, and advance to ends as the lists fill.
	copies, messages := 0, 0
	for i := range steps {
		copies, t.copyEnd[i] = copies+t.copyEnd[i], copies
		messages, t.messageEnd[i] = messages+t.messageEnd[i], messages
	}
	for i := range l.copies {
		end := &t.copyEnd[l.copies[i].Step]
		t.copyOrder[*end] = int32(i)
		*end++
	}
	for i := range l.recvs {
		k := l.recvs[i].message
		end := &t.messageEnd[l.messages[k].step]
		t.messageOrder[*end] = k
		*end++
	}
	return t
}
