package sim

// times is when everything happens, but for the ends of steps, which the
// programTable keeps.
type times struct {
	ranks []rankState
	spans []span // per step of the timeline

	// With Sync, per step of a rank: when it begins, and the message that all
	// ranks waited for, or -1 before the first message. Otherwise nil.
	begin   []float64
	trigger []int32

	// With Sync: when the ranks begin their current steps, and the message that
	// decided it; and the same of their next steps, as far as known.
	begun, next     float64
	begunBy, nextBy int32

	// Per message. Nil where Config.Record is not set and no message waits: each
	// then starts when both its ends are ready.
	start, finish []float64

	// Per message: the resource that it waited for last, and the message that
	// held it. Nil where no message waits.
	waitedFor, holder []int32
}

// A span is the time from the first start of a message of a step until all its
// messages have arrived and been combined.
type span struct {
	start, end float64
	begun      bool
}

func (s *span) cover(start, end float64) {
	if !s.begun || start < s.start {
		s.start = start
	}
	s.begun = true
	s.end = max(s.end, end)
}

// newTimes makes room for the times of messages if perMessage, and for what
// they waited for if waits.
func newTimes(p *programTable, sync, perMessage, waits bool) *times {
	t := &times{ranks: make([]rankState, p.ranks), begunBy: -1, nextBy: -1}
	for rank := range t.ranks {
		t.ranks[rank].step = p.first[rank]
	}
	if sync {
		t.begin, t.trigger = make([]float64, len(p.steps)), make([]int32, len(p.steps))
	}
	if perMessage {
		t.start, t.finish = make([]float64, len(p.messages)), make([]float64, len(p.messages))
	}
	if waits {
		t.waitedFor, t.holder = make([]int32, len(p.messages)), make([]int32, len(p.messages))
	}
	return t
}

// span returns the span of a step of the timeline.
func (t *times) span(timelineStep int32) *span {
	for len(t.spans) <= int(timelineStep) {
		t.spans = append(t.spans, span{})
	}
	return &t.spans[timelineStep]
}

// beginStep records, with Sync, when a step begins.
func (t *times) beginStep(step int32, at float64) {
	if t.begin != nil {
		t.begin[step], t.trigger[step] = at, t.begunBy
		t.delayNext(at, t.begunBy)
	}
}

// delayNext makes the ranks begin their next steps, with Sync, no earlier than
// a message allows.
func (t *times) delayNext(at float64, message int32) {
	if at > t.next {
		t.next, t.nextBy = at, message
	}
}

// beginNext lets all ranks, with Sync, begin their next steps.
func (t *times) beginNext() { t.begun, t.begunBy = t.next, t.nextBy }

// A rankState is the current step of one rank, and the totals of its steps so
// far.
type rankState struct {
	step    int32 // its current step
	pending int32 // messages of the step that have not arrived, at either end
	cause   int32 // the last of those that have
	combine int   // words to combine when all have

	timelineStep     int32 // the first step of the timeline in which the current step can begin
	nextTimelineStep int32 // the same of its next step, as far as known

	begun   float64 // when the step began
	arrived float64 // when the last message arrived
	total   Rank
}

// sent and received count a message at its two ends.
func (s *rankState) sent(words int, took float64) {
	s.total.Sent++
	s.total.SentWords += words
	s.total.Sending += took
}

func (s *rankState) received(words int, took float64, combine bool) {
	s.total.Received++
	s.total.ReceivedWords += words
	s.total.Receiving += took
	if combine {
		s.combine += words
	}
}

// arrive takes a message off the step, and reports whether it was the last.
// The message belongs to the step of the timeline before nextTimelineStep.
func (s *rankState) arrive(message, nextTimelineStep int32, at float64) bool {
	s.nextTimelineStep = max(s.nextTimelineStep, nextTimelineStep)
	if at >= s.arrived {
		s.arrived, s.cause = at, message
	}
	s.pending--
	return s.pending == 0
}

// compute charges the rank for combining some words.
func (s *rankState) compute(words int, top float64) (took float64) {
	took = top * float64(words)
	s.total.Combining += took
	return took
}

// endStep ends a rank's step: the rank combines what has arrived, and goes on
// to its next step.
func (t *times) endStep(s *rankState, steps []step, top float64) {
	s.begun = s.arrived
	if s.combine > 0 {
		s.begun += s.compute(s.combine, top)
		t.span(s.nextTimelineStep-1).cover(s.begun, s.begun)
		s.combine = 0
	}
	steps[s.step].end, steps[s.step].cause = s.begun, s.cause
	t.delayNext(s.begun, s.cause)
	s.timelineStep = s.nextTimelineStep
	s.step++
}
