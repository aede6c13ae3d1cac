package sched

import (
	"errors"
	"fmt"
	"math"
)

// DefaultMemory is the number of bytes that [Schedule.Check] and
// [Schedule.Timeline] may take, by their own estimate.
const DefaultMemory = 4 << 30

// ErrTooLarge is the error that every [*TooLargeError] wraps.
var ErrTooLarge = errors.New("sched: the schedule is too large")

// A TooLargeError says why a schedule was refused: what was asked for would take
// more memory than the limit. It comes before the memory is allocated.
type TooLargeError struct {
	Doing string  // what was asked for, as in "check"
	P     int     // the schedule's ranks
	Bytes float64 // of memory that it would take, estimated; +Inf if the estimate was too low
	Limit int64   // in bytes
}

func (e *TooLargeError) Error() string {
	text := fmt.Sprintf("too large: to %s this schedule of %d ranks would take ", e.Doing, e.P)
	switch {
	case math.IsInf(e.Bytes, 1):
		text += "more memory than estimated"
	case e.Bytes <= float64(e.Limit):
		return fmt.Sprintf("%smore than %d messages or copies: want fewer", text, maxEntries)
	default:
		text += "about " + gibibytes(e.Bytes)
	}
	return fmt.Sprintf("%s, and the limit is %s: want fewer ranks, blocks or messages, or a higher limit", text, gibibytes(float64(e.Limit)))
}

// gibibytes writes a number of bytes with three digits or more.
func gibibytes(bytes float64) string {
	if x := bytes / (1 << 30); x >= 100 {
		return fmt.Sprintf("%.0f GiB", x)
	}
	return fmt.Sprintf("%.3g GiB", bytes/(1<<30))
}

func (e *TooLargeError) Unwrap() error { return ErrTooLarge }

// The memory of a timeline and a replay, in bytes. An entry counts twice what it
// holds: the programs that it was made from are garbage that is collected late.
const (
	perEntry = 200 // per message or copy of a timeline
	perRank  = 100
	perValue = 48 // per block of a replay's buffers
	perSpan  = 8  // per operand beyond the first of a replay's value

	maxEntries = math.MaxInt32 / 2 // messages or copies: indices have 32 bits
)

// A Size is what the programs of all ranks have together.
type Size struct {
	Steps    float64 // that send or receive
	Messages float64
	Copies   float64
}

// Size estimates the size of the schedule. It makes the programs of the root,
// which may have much more to do than other ranks, and of a few other ranks,
// whose average it takes for all others.
//
// Multiples of the golden section of P are spread evenly, and their binary digits
// have no pattern: in a binomial tree, a rank that ends in zeros has more to do
// than most.
func (s *Schedule) Size() Size {
	samples := 16
	if s.P <= 64 {
		samples = 4
	}
	var reused Builder
	size := s.Make(&reused, s.Root).size()
	var sum Size
	counted := 0
	for i := range min(samples, s.P) {
		rank := i
		if s.P > samples {
			_, part := math.Modf(float64(i+1) * (math.Phi - 1))
			rank = int(part * float64(s.P))
		}
		if rank != s.Root {
			sum.add(s.Make(&reused, rank).size(), 1)
			counted++
		}
	}
	if counted > 0 {
		size.add(sum, float64(s.P-1)/float64(counted))
	}
	return size
}

func (z *Size) add(o Size, times float64) {
	z.Steps += o.Steps * times
	z.Messages += o.Messages * times
	z.Copies += o.Copies * times
}

func (p Program) size() (z Size) {
	for _, step := range p {
		if len(step.Sends)+len(step.Recvs) > 0 {
			z.Steps++
		}
		z.Copies += float64(len(step.Copies))
		for _, send := range step.Sends {
			z.Messages += float64(len(send.To))
		}
	}
	return z
}

// CheckMemory estimates the bytes of memory that [Schedule.Check] takes.
func (s *Schedule) CheckMemory() float64 {
	return s.replayMemory() + s.TimelineMemory()
}

// TimelineMemory estimates the bytes of memory that [Schedule.Timeline] takes.
func (s *Schedule) TimelineMemory() float64 {
	return s.Size().memory(s.P)
}

// memory returns the bytes of a timeline of p ranks.
func (z Size) memory(p int) float64 {
	return (z.Messages+z.Copies)*perEntry + float64(p)*perRank
}

// room returns an empty list with room for about n entries.
func room[T any](n float64) []T { return make([]T, 0, int(n*1.01)+16) }

// replayMemory returns the bytes that a [Replay] takes at least.
func (s *Schedule) replayMemory() float64 {
	p := float64(s.P)
	if s.Collective == Barrier {
		return 2*p*p/8 + 4*p
	}
	return p * (float64(s.Blocks) + float64(s.Scratch)) * perValue
}
