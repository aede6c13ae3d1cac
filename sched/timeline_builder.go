package sched

import "slices"

// A timelineBuilder collects the programs of all ranks, matches sends with
// receives, and lets the ranks run until all are done or stuck.
type timelineBuilder struct {
	s        *Schedule
	first    []int // rank r's steps are numbered first[r] to first[r+1] among all ranks' steps
	copies   []RankCopy
	messages []message // by sender, and order in its program
	recvs    []recv    // by receiver, and order in its program
	steps    []ownStep // of all ranks, and one more, which ends the last

	ready   []int32 // per rank: the step of the timeline in which its current step can begin
	current []int   // per rank: the current step of its program
}

// A recv is a receive of a program and, after matching, its message.
type recv struct {
	from, to, step, index int32
	lo, hi                int32
	dst                   Buffer
	how                   Combine
	ordered               bool
	message               int32
}

// An ownStep is a step of one rank's program.
type ownStep struct {
	copies, messages, recvs int32 // where the step begins in each list
	pending                 int32 // its messages, sent and received, that are not delivered
}

// collect lists the copies, messages and receives of all programs, and checks
// each step by itself. It stops with ErrTooLarge when the lists take more bytes
// than free, because the programs are larger than those that were counted.
func (b *timelineBuilder) collect(free int64) error {
	var (
		reused Builder
		faults Faults
	)
	for rank := range b.s.P {
		b.first[rank] = len(b.steps)
		for i, step := range b.s.Make(&reused, rank) {
			if f := b.s.checkStep(rank, i, step); f != nil {
				if faults = append(faults, f); faults.full() {
					return faults
				}
			}
			b.add(rank, i, step)
		}
		if entries := max(len(b.messages), len(b.recvs)) + len(b.copies); int64(entries)*perEntry > free || entries > maxEntries {
			return ErrTooLarge
		}
	}
	b.first[b.s.P] = len(b.steps)
	b.steps = append(b.steps, b.beginStep())
	return faults.err()
}

// beginStep returns a step that begins at the ends of the lists.
func (b *timelineBuilder) beginStep() ownStep {
	return ownStep{copies: int32(len(b.copies)), messages: int32(len(b.messages)), recvs: int32(len(b.recvs))}
}

func (b *timelineBuilder) add(rank, i int, step Step) {
	b.steps = append(b.steps, b.beginStep())
	for _, c := range step.Copies {
		b.copies = append(b.copies, RankCopy{Rank: rank, LocalStep: i, Copy: c})
	}
	for k, send := range step.Sends {
		for c, to := range send.To {
			b.messages = append(b.messages, message{
				from: int32(rank), sendStep: int32(i), send: int32(k), dest: int32(c), to: int32(to),
				src: send.Src, lo: int32(send.Blocks.Lo), hi: int32(send.Blocks.Hi),
			})
		}
	}
	for k, r := range step.Recvs {
		b.recvs = append(b.recvs, recv{
			from: int32(r.From), to: int32(rank), step: int32(i), index: int32(k),
			dst: r.Dst, lo: int32(r.Blocks.Lo), hi: int32(r.Blocks.Hi), how: r.How,
			ordered: step.Ordered(k),
		})
	}
}

// match gives every receive its message, and tells the message where it lands.
func (b *timelineBuilder) match() error {
	var faults Faults
	for i, k := range Match(b.s.P, b.messages, (*message).ends, b.recvs, (*recv).ends) {
		if f := b.pair(i, k); f != nil {
			if faults = append(faults, f); faults.full() {
				break
			}
		}
	}
	return faults.err()
}

// pair gives receive k message i. One of them is -1 if the other has no partner.
func (b *timelineBuilder) pair(i, k int) *Fault {
	if k < 0 {
		m := &b.messages[i]
		return faultf(int(m.from), int(m.sendStep), int(m.to), -1, "sends a message that rank %d never receives", m.to).by(sendOp, int(m.send))
	}
	r := &b.recvs[k]
	if i < 0 {
		return faultf(int(r.to), int(r.step), int(r.from), -1, "waits for a message that rank %d never sends", r.from).by(recvOp, int(r.index))
	}
	m := &b.messages[i]
	m.recvStep, m.recv, m.dst, m.at, m.how, m.ordered = r.step, r.index, r.dst, r.lo, r.how, r.ordered
	r.message = int32(i)
	if m.hi-m.lo != r.hi-r.lo {
		return faultf(int(m.to), int(m.recvStep), int(m.from), int(m.at),
			"receives %d blocks where rank %d sends %d (its step %d)", r.hi-r.lo, m.from, m.hi-m.lo, m.sendStep+1).by(recvOp, int(r.index))
	}
	if err := b.s.sameLengths(int(m.from), int(m.to), m.src, int(m.lo), int(m.hi-m.lo), m.dst, int(m.at)); err != nil {
		return faultf(int(m.to), int(m.recvStep), int(m.from), int(m.at), "%v", err).by(recvOp, int(r.index))
	}
	return nil
}

func (m *message) ends() (from, to int32) { return m.from, m.to }
func (r *recv) ends() (from, to int32)    { return r.from, r.to }

// run lets all ranks go through their programs with no send buffered, and gives
// every copy and message its step of the timeline.
func (b *timelineBuilder) run() error {
	for i := range len(b.steps) - 1 {
		begin, end := b.steps[i], b.steps[i+1]
		b.steps[i].pending = (end.messages - begin.messages) + (end.recvs - begin.recvs)
	}
	var work []int
	for rank := range b.s.P {
		work = append(work, rank)
	}
	for len(work) > 0 {
		rank := work[len(work)-1]
		work = b.enter(rank, work[:len(work)-1])
	}
	for rank := range b.s.P {
		if b.current[rank] < b.first[rank+1]-b.first[rank] {
			return b.deadlock(rank)
		}
	}
	return nil
}

// enter brings a rank into its current step, past steps of copies alone, and
// delivers the messages whose other end is there. It appends to work the ranks
// whose step is done.
func (b *timelineBuilder) enter(rank int, work []int) []int {
	n := b.first[rank] + b.current[rank]
	for n < b.first[rank+1] {
		b.numberCopies(n, rank)
		if b.steps[n].pending > 0 {
			break
		}
		n++
		b.current[rank]++
	}
	if n == b.first[rank+1] {
		return work
	}
	begin, end := b.steps[n], b.steps[n+1]
	for i := begin.messages; i < end.messages; i++ {
		b.messages[i].present++
		work = b.deliver(&b.messages[i], work)
	}
	for i := begin.recvs; i < end.recvs; i++ {
		m := &b.messages[b.recvs[i].message]
		m.present++
		work = b.deliver(m, work)
	}
	return work
}

// numberCopies gives the copies of step n their step of the timeline.
func (b *timelineBuilder) numberCopies(n, rank int) {
	for i := b.steps[n].copies; i < b.steps[n+1].copies; i++ {
		b.copies[i].Step = int(b.ready[rank])
	}
}

// deliver delivers m if both its ends have entered their steps and no earlier
// receive holds m back.
func (b *timelineBuilder) deliver(m *message, work []int) []int {
	if m.delivered || m.present < 2 {
		return work
	}
	m.step = max(b.ready[m.from], b.ready[m.to])
	n := b.first[m.to] + int(m.recvStep)
	if m.ordered {
		for i := b.steps[n].recvs; i < b.steps[n].recvs+m.recv; i++ {
			earlier := &b.messages[b.recvs[i].message]
			if !earlier.delivered {
				return work
			}
			m.step = max(m.step, earlier.step)
		}
	}
	m.delivered = true
	work = b.finish(int(m.from), int(m.sendStep), work)
	work = b.finish(int(m.to), int(m.recvStep), work)
	for i := b.steps[n].recvs + m.recv + 1; i < b.steps[n+1].recvs; i++ {
		if next := &b.messages[b.recvs[i].message]; next.ordered {
			work = b.deliver(next, work)
		}
	}
	return work
}

// finish takes one message off a rank's step. After the last message the rank
// goes on to its next step.
func (b *timelineBuilder) finish(rank, step int, work []int) []int {
	n := b.first[rank] + step
	b.steps[n].pending--
	if b.steps[n].pending > 0 {
		return work
	}
	last := b.ready[rank]
	for i := b.steps[n].messages; i < b.steps[n+1].messages; i++ {
		last = max(last, b.messages[i].step)
	}
	for i := b.steps[n].recvs; i < b.steps[n+1].recvs; i++ {
		last = max(last, b.messages[b.recvs[i].message].step)
	}
	b.ready[rank] = last + 1
	b.current[rank]++
	return append(work, rank)
}

// deadlock names the circle of ranks that wait for each other, which it finds
// from a rank that is stuck.
func (b *timelineBuilder) deadlock(rank int) error {
	first := rank
	var chain []int
	for !slices.Contains(chain, rank) {
		chain = append(chain, rank)
		rank = b.waitsFor(rank)
	}
	text := ""
	for _, r := range append(chain, rank) {
		if text != "" {
			text += ", which waits for "
		}
		text += rankInStep(r, b.current[r])
	}
	return faultf(first, b.current[first], b.waitsFor(first), -1, "deadlock: %s", text)
}

// waitsFor returns the peer of the first message that a stuck rank waits for.
func (b *timelineBuilder) waitsFor(rank int) int {
	n := b.first[rank] + b.current[rank]
	for i := b.steps[n].recvs; i < b.steps[n+1].recvs; i++ {
		m := &b.messages[b.recvs[i].message]
		if !m.delivered && m.present < 2 {
			return int(m.from)
		}
	}
	for i := b.steps[n].messages; i < b.steps[n+1].messages; i++ {
		if m := &b.messages[i]; !m.delivered {
			return int(m.to)
		}
	}
	return rank
}

// timeline orders copies and messages by step.
func (b *timelineBuilder) timeline() *Timeline {
	steps := 0
	for i := range b.messages {
		steps = max(steps, int(b.messages[i].step)+1)
	}
	for i := range b.copies {
		steps = max(steps, b.copies[i].Step+1)
	}
	t := &Timeline{
		s:            b.s,
		copies:       b.copies,
		messages:     b.messages,
		copyOrder:    make([]int32, len(b.copies)),
		messageOrder: make([]int32, len(b.messages)),
		copyEnd:      make([]int, steps),
		messageEnd:   make([]int, steps),
	}
	for i := range b.copies {
		t.copyEnd[b.copies[i].Step]++
	}
	for i := range b.messages {
		t.messageEnd[b.messages[i].step]++
	}
	// The counts become beginnings, and advance to ends as the lists fill.
	copies, messages := 0, 0
	for i := range steps {
		copies, t.copyEnd[i] = copies+t.copyEnd[i], copies
		messages, t.messageEnd[i] = messages+t.messageEnd[i], messages
	}
	for i := range b.copies {
		end := &t.copyEnd[b.copies[i].Step]
		t.copyOrder[*end] = int32(i)
		*end++
	}
	for i := range b.recvs {
		k := b.recvs[i].message
		end := &t.messageEnd[b.messages[k].step]
		t.messageOrder[*end] = k
		*end++
	}
	return t
}
