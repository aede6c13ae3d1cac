package sim

import "math"

// This file has what messages are to processing: their lengths, times and rates.

// length returns the words of a message, and timelineStep its step of the timeline.
func (s *processing) length(i int32) int { return s.words(&s.messages[i]) }

func (s *processing) timelineStep(i int32) int32 {
	p := &s.progress[i]
	return max(s.steps[p.sendStep].timelineStep, s.steps[p.recvStep].timelineStep)
}

// eager reports whether a message does not wait for its receiver.
func (s *processing) eager(i int32) bool {
	if s.apart(s.queued[i].ends) {
		return s.length(i) < s.machine.RendezvousBetween
	}
	return s.length(i) < s.machine.RendezvousFrom
}

// receiveTime returns the time of the receiving part of a message if it had some words.
func (s *processing) receiveTime(i int32, words int) float64 {
	m := &s.queued[i]
	return s.machine.Receive(int(m.from), int(m.to), words)
}

// flight returns the time from the start of a message until its receiving part may begin, if
// it had some words.
func (s *processing) flight(i int32, words int) float64 {
	p := &s.progress[i]
	return max(0, s.messageTime(s.network, s.queued[i].ends, p.sendStep, p.recvStep, words, 1)-s.receiveTime(i, words))
}

// wayRate returns the words that a message moves per unit of time on its way, if it has the
// network for itself.
func (s *processing) wayRate(i int32) float64 {
	words := s.length(i)
	if flow := s.flight(i, words) - s.flight(i, 0); flow > 0 {
		return float64(words) / flow
	}
	return math.Inf(1)
}

// flows reports whether the words of a message share the memory with those of others.
func (s *processing) flows(i int32) bool {
	return s.machine.Memory > 0 && s.length(i) >= s.machine.MemoryFrom && s.flowRate(i) < math.Inf(1)
}

// flowRate returns the words that the receiving part of a message moves per unit of time, if
// it has the memory for itself.
func (s *processing) flowRate(i int32) float64 {
	words := s.length(i)
	if flow := s.receiveTime(i, words) - s.receiveTime(i, 0); flow > 0 {
		return float64(words) / flow
	}
	return math.Inf(1)
}
