package sim

// times is when everything happens, but for the steps' ends, which are in the
// score.
type times struct {
	stands []stand // per rank
	spans  []span  // per round

	// With Sync, per step: when it may begin, and the message that everybody
	// waited for; -1 in the first round. Otherwise nil.
	begin []float64
	waker []int32

	// With Sync: when the steps of this round begin, and after which message;
	// and the same of the next round, as far as is known.
	opening, latest    float64
	openedBy, latestBy int32

	// Per message; nil where nobody asks, and each starts when both ends have
	// come to it.
	start, finish []float64

	// Per message: the lane that it waited for last, and the message that had
	// it. Nil where no message waits.
	lane, holder []int32
}

// A span is when the messages of a round are under way or being combined.
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

func newTimes(s *score, sync, perMessage, waits bool) *times {
	t := &times{stands: make([]stand, s.ranks), openedBy: -1, latestBy: -1}
	for rank := range t.stands {
		t.stands[rank].step = s.first[rank]
	}
	if sync {
		t.begin, t.waker = make([]float64, len(s.steps)), make([]int32, len(s.steps))
	}
	if perMessage {
		t.start, t.finish = make([]float64, len(s.messages)), make([]float64, len(s.messages))
	}
	if waits {
		t.lane, t.holder = make([]int32, len(s.messages)), make([]int32, len(s.messages))
	}
	return t
}

// span returns that of a round.
func (t *times) span(round int32) *span {
	for len(t.spans) <= int(round) {
		t.spans = append(t.spans, span{})
	}
	return &t.spans[round]
}

// begins notes, with Sync, when a step begins.
func (t *times) begins(step int32, at float64) {
	if t.begin != nil {
		t.begin[step], t.waker[step] = at, t.openedBy
		t.late(at, t.openedBy)
	}
}

// late puts the next round off until something has happened.
func (t *times) late(at float64, by int32) {
	if at > t.latest {
		t.latest, t.latestBy = at, by
	}
}

// open begins the next round.
func (t *times) open() { t.opening, t.openedBy = t.latest, t.latestBy }

// A stand is where one rank is in its program, and what it has done so far.
type stand struct {
	step    int32   // its current step
	round   int32   // the first in which that step can begin
	until   int32   // the first in which the next one can, as far as is known
	pending int32   // the messages of the step that have not arrived, at either end
	cause   int32   // of those that have, the last
	combine int     // the words to combine when all have
	reach   float64 // when the step began
	last    float64 // when the last message arrived
	did     Rank
}

// sent and received count a message at its two ends.
func (s *stand) sent(words int, took float64) {
	s.did.Sent++
	s.did.SentWords += words
	s.did.Sending += took
}

func (s *stand) received(words int, took float64, combine bool) {
	s.did.Received++
	s.did.ReceivedWords += words
	s.did.Receiving += took
	if combine {
		s.combine += words
	}
}

// arrived takes a message off the step, and reports whether it was the last.
func (s *stand) arrived(message, round int32, at float64) bool {
	s.until = max(s.until, round)
	if at >= s.last {
		s.last, s.cause = at, message
	}
	s.pending--
	return s.pending == 0
}

// work lets the rank combine so many words.
func (s *stand) work(words int, top float64) (took float64) {
	took = top * float64(words)
	s.did.Combining += took
	return took
}

// endStep ends a rank's step: it combines what has come, and goes on to the
// next.
func (t *times) endStep(s *stand, steps []step, top float64) {
	s.reach = s.last
	if s.combine > 0 {
		s.reach += s.work(s.combine, top)
		t.span(s.until-1).cover(s.reach, s.reach)
		s.combine = 0
	}
	steps[s.step].end, steps[s.step].cause = s.reach, s.cause
	t.late(s.reach, s.cause)
	s.round = s.until
	s.step++
}
