// Package clock has the clock that the processes of a host share, and compares the clocks
// of two hosts.
package clock

import "time"

// An Offset says what to add to the time of one clock for that of another. The true value
// differs from it by at most Bound.
type Offset struct {
	At    int64 `json:"at"` // when it was measured, by the first clock, in nanoseconds
	Value int64 `json:"value"`
	Bound int64 `json:"bound"`
}

// rounds is how many round trips a comparison takes. The shortest counts.
const rounds = 16

// Compare compares the clock of this host with another one. Ask asks for the time there; it
// returns the time here right before the question, the answer, and the time here when that
// came. Since the other clock was read in between, it was the answer at some time between
// the two.
func Compare(ask func() (before, there, after int64, err error)) (best Offset, err error) {
	for i := range rounds {
		before, there, after, err := ask()
		if err != nil {
			return best, err
		}
		half := (after - before + 1) / 2
		if i == 0 || half < best.Bound {
			best = Offset{At: before + half, Value: there - before - half, Bound: half}
		}
	}
	return best, nil
}

// Between returns the offset at some time, from two that were measured earlier and later:
// clocks of two hosts drift apart at a constant rate, about.
func Between(first, last Offset, at int64) Offset {
	o := Offset{At: at, Value: last.Value, Bound: max(first.Bound, last.Bound)}
	if last.At > first.At {
		part := float64(min(max(at, first.At), last.At)-first.At) / float64(last.At-first.At)
		o.Value = first.Value + int64(part*float64(last.Value-first.Value))
	}
	return o
}

// A Reading is the time of the host's clock at an instant that this process knows.
type Reading struct {
	Instant time.Time
	Host    int64
}

// Read reads the host's clock.
func Read() Reading { return Reading{time.Now(), Now()} }
