package explain

import (
	"slices"

	"github.com/chorale-go/chorale/sched"
)

// A Choice is the algorithm that a call runs, and the reason for it.
type Choice struct{ Algorithm, Why string }

// A Range is the calls from a number of bytes or ranks on, up to the next range.
type Range struct {
	From     int    `json:"from"`
	Selected string `json:"selected"`
	Why      string `json:"why"`
	Fastest  string `json:"fastest"` // by the simulation; "" if it is unknown
}

// A Sample is the calls of a size, or by a number of ranks.
type Sample struct {
	At    int
	Times []Rival // by the algorithms that fit the call, the least first
}

// Time returns the time by an algorithm, or 0 if there is none.
func (s *Sample) Time(algorithm string) float64 {
	for _, r := range s.Times {
		if r.Algorithm == algorithm {
			return r.Time
		}
	}
	return 0
}

// The sizes and the numbers of ranks among which changes are looked for.
const (
	MinBytes, MaxBytes = 8, 4 << 20
	MaxRanks           = 64
)

// Octaves returns the powers of two from one to another.
func Octaves(from, to int) (all []int) {
	for n := from; n <= to; n *= 2 {
		all = append(all, n)
	}
	return all
}

// budget is how many messages the simulations of several samples may have together.
const budget = 1 << 18

// BySize simulates calls of some sizes, or of every second one and so on if that is too much.
func (m *Machine) BySize(c Call, sizes []int, algorithms []string, constraints Constraints) []Sample {
	at := func(bytes int) Call {
		c.Bytes = bytes
		return c
	}
	for c.Collective != sched.Barrier && c.Ranks <= maxComparedRanks && len(sizes) > 1 {
		messages := 0.0
		for _, n := range sizes {
			messages += at(n).messages(algorithms, constraints)
		}
		if messages <= budget {
			return m.samples(sizes, at, algorithms, constraints)
		}
		var half []int
		for i := 0; i < len(sizes); i += 2 {
			half = append(half, sizes[i])
		}
		sizes = half
	}
	return nil
}

// ByRanks simulates calls by some numbers of ranks, without the largest ones that are too
// much.
func (m *Machine) ByRanks(c Call, ranks []int, algorithms []string, constraints Constraints) []Sample {
	messages := 0.0
	for i, p := range ranks {
		if messages += c.By(p).messages(algorithms, constraints); messages > budget {
			ranks = ranks[:i]
			break
		}
	}
	return m.samples(ranks, c.By, algorithms, constraints)
}

// By returns the call by another number of ranks, which may be too few for its root.
func (c Call) By(ranks int) Call {
	c.Ranks = ranks
	if c.Root >= ranks {
		c.Root = 0
		if c.Collective == sched.Shift {
			c.Root = 1 % ranks
		}
	}
	return c
}

// messages returns the messages of the simulations of a call by some algorithms.
func (c Call) messages(algorithms []string, constraints Constraints) (sum float64) {
	_, schedules := c.possible(algorithms, constraints)
	for _, s := range schedules {
		if n := s.Size().Messages; n <= MaxMessages {
			sum += n
		}
	}
	return sum
}

func (m *Machine) samples(at []int, call func(int) Call, algorithms []string, constraints Constraints) (all []Sample) {
	for _, x := range at {
		if times := m.Rivals(call(x), algorithms, constraints); len(times) > 0 {
			all = append(all, Sample{x, times})
		}
	}
	return all
}

// Changes returns the ranges in which the same algorithm is chosen, among points in order,
// and the same one is the fastest, by the samples. With exact, the points are not all that
// there are between the first and the last one: a change of the choice between two of them
// is looked for, as if there were one alone.
func Changes(points []int, exact bool, choose func(at int) (Choice, error), samples []Sample) (all []Range, err error) {
	starts := map[int]Choice{}
	var last Choice
	for i, x := range points {
		chosen, err := choose(x)
		if err != nil {
			return nil, err
		}
		if i == 0 || chosen.Algorithm != last.Algorithm {
			from := x
			if i > 0 && exact {
				if from, err = firstOther(points[i-1], x, last.Algorithm, choose); err != nil {
					return nil, err
				}
			}
			starts[from] = chosen
		}
		last = chosen
	}
	fastest, err := fastestFrom(samples, choose)
	if err != nil {
		return nil, err
	}
	var from []int
	for x := range starts {
		from = append(from, x)
	}
	for x := range fastest {
		from = append(from, x)
	}
	slices.Sort(from)
	var now Range
	for _, x := range slices.Compact(from) {
		if chosen, ok := starts[x]; ok {
			now.Selected, now.Why = chosen.Algorithm, chosen.Why
		}
		if name, ok := fastest[x]; ok {
			now.Fastest = name
		}
		now.From = x
		if now.Selected != "" {
			all = append(all, now)
		}
	}
	return all, nil
}

// firstOther returns the first point above low, up to high, where another algorithm is
// chosen.
func firstOther(low, high int, algorithm string, choose func(int) (Choice, error)) (int, error) {
	for low+1 < high {
		middle := low + (high-low)/2
		chosen, err := choose(middle)
		if err != nil {
			return 0, err
		}
		if chosen.Algorithm == algorithm {
			low = middle
		} else {
			high = middle
		}
	}
	return high, nil
}

// Tolerance is by how much an algorithm has to be faster than the one that is chosen, and than
// the one that was the fastest before: less than that a simulation does not tell apart.
const Tolerance = 0.01

// fastestFrom returns the algorithms that are the fastest, by the samples at which they
// begin to be.
func fastestFrom(samples []Sample, choose func(at int) (Choice, error)) (map[int]string, error) {
	starts := map[int]string{}
	last := ""
	for _, s := range samples {
		chosen, err := choose(s.At)
		if err != nil {
			return nil, err
		}
		best := s.Times[0]
		name := best.Algorithm
		for _, preferred := range []string{last, chosen.Algorithm} {
			if time := s.Time(preferred); time > 0 && time*(1-Tolerance) <= best.Time {
				name = preferred
			}
		}
		if name != last {
			last, starts[s.At] = name, name
		}
	}
	return starts, nil
}
