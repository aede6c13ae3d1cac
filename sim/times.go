package sim

import "math"

// times is when everything happens.
type times struct {
	ranks []rankState
	spans []span // per step of the timeline

	// With Sync, per step of a rank: the message that all ranks waited for, or -1
	// before the first message. Otherwise nil. Where messages queue, these and those of
	// rankState.cause are their numbers in queued.
	trigger []int32

	// With Sync: when the ranks begin their current steps, and the message that
	// decided it; and the same of their next steps, as far as known.
	begun, next     float64
	begunBy, nextBy int32

	// Per message, where none waits. Nil where neither Config.Record nor Config.Sync
	// is set: they then follow from the messages before.
	start, finish []float64

	queued []queuedMessage // of every message, where messages wait; otherwise nil
	works  *workTable      // where messages are work of processors; otherwise nil
}

// A span is the time from the first start of a message of a step until all its
// messages have arrived and been combined.
type span struct {
	start, end float64 // start is infinite before the first message
}

func (s *span) cover(start, end float64) {
	if start < s.start {
		s.start = start
	}
	s.extend(end)
}

func (s *span) extend(end float64) {
	if end > s.end {
		s.end = end
	}
}

func newTimes(p *programTable, sync bool) *times {
	t := &times{ranks: makeList[rankState](p.ranks, p.ranks), begunBy: -1, nextBy: -1}
	for rank := range t.ranks {
		t.ranks[rank].step, t.ranks[rank].cause = p.first[rank], -1
	}
	if sync {
		t.trigger = make([]int32, len(p.steps))
	}
	return t
}

// span returns the span of a step of the timeline.
func (t *times) span(timelineStep int32) *span {
	for len(t.spans) <= int(timelineStep) {
		t.spans = append(t.spans, span{start: math.Inf(1)})
	}
	return &t.spans[timelineStep]
}

// beginStep records, with Sync, when a step begins.
func (t *times) beginStep(step int32, at float64) {
	if t.trigger != nil {
		t.trigger[step] = t.begunBy
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

// A rankState is the current step of one rank, and its totals so far. It fills two
// lines of a processor's cache, the first with what changes when a message arrives.
type rankState struct {
	step    int32  // its current step
	pending int32  // messages of the step that have not arrived, at either end; 0 before it has begun
	cause   int32  // the last of those that have, and before that, of the step before; -1 for none
	as      uint32 // its flag: lastSent or lastReceived; 0 if the step has no messages

	timelineStep     int32 // the first step of the timeline in which the current step can begin
	nextTimelineStep int32 // the same of its next step, as far as known

	arrived       float64 // when the last message arrived
	combine       int     // words to combine when all messages of the step have arrived
	receivedWords int     // these and the next two: see Rank
	sending       float64
	receiving     float64

	matching
	combining float64 // see Rank
	end       float64
}

// A matching is what matching and timing messages that do not wait takes of a rank's
// current step.
type matching struct {
	begun                float64 // when the step began
	sends, recvs         span32  // once begun: its messages and receives
	sendIndex, recvIndex int32   // see rendezvous
	sendFree, recvFree   float64 // when the rank's ports are free again; not with all ports
}

// A span32 is a range of messages or receives.
type span32 struct{ lo, hi int32 }

// awaitNothing lets a step of copies alone end. What let it begin is the message
// that all ranks waited for, or if nothing took time the last of the rank's own.
func (s *rankState) awaitNothing(awaited int32) {
	s.as = 0
	if awaited >= 0 {
		s.cause = awaited
	}
}

// arrive takes a message off the step, and reports whether it was the last.
// The message belongs to the step of the timeline before nextTimelineStep. The
// flag says at which of its ends the rank is.
func (s *rankState) arrive(message int32, flag uint32, nextTimelineStep int32, at float64) bool {
	s.nextTimelineStep = max(s.nextTimelineStep, nextTimelineStep)
	if at >= s.arrived {
		s.arrived, s.cause, s.as = at, message, flag
	}
	s.pending--
	return s.pending == 0
}

// compute charges the rank for combining some words.
func (s *rankState) compute(words int, n *network) (took float64) {
	if words == 0 {
		return 0
	}
	took = n.combining(words)
	s.combining += took
	return took
}

// endStep ends a rank's step: the rank combines what has arrived, and goes on
// to its next step. It returns when the rank is done with that.
func (t *times) endStep(s *rankState, n *network) (done float64) {
	done = s.arrived
	if s.combine > 0 {
		done += s.compute(s.combine, n)
		t.span(s.nextTimelineStep - 1).extend(done)
		s.combine = 0
	}
	t.delayNext(done, s.cause)
	s.timelineStep = s.nextTimelineStep
	s.step++
	return done
}

// totals returns the totals of every rank, when all messages have arrived.
func (t *times) totals(p *programTable) []Rank {
	all := make([]Rank, len(t.ranks))
	for rank := range t.ranks {
		s := &t.ranks[rank]
		sends, endSends := p.sentBy(int32(rank))
		recvs, endRecvs := p.receivedBy(int32(rank))
		words := 0
		for i := sends; i < endSends; i++ {
			words += p.words(&p.messages[i])
		}
		all[rank] = Rank{
			Sent: int(endSends - sends), Received: int(endRecvs - recvs),
			SentWords: words, ReceivedWords: s.receivedWords,
			Sending: s.sending, Receiving: s.receiving, Combining: s.combining, End: s.end,
		}
	}
	return all
}
