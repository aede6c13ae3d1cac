package explain

import (
	"cmp"
	"slices"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/sched"
)

// A Rival is an algorithm and the time that a call takes by it.
type Rival struct {
	Algorithm string  `json:"algorithm"`
	Time      float64 `json:"time"` // µs
}

// Constraints are what a call asks of its algorithm beside the number of ranks.
type Constraints struct {
	Ordered bool // the operation does not commute
	Uneven  bool // parts differ in length
}

// allow reports whether the algorithm of a call meets the constraints.
func (n Constraints) allow(c Call) bool {
	r, err := algo.Restricted(c.Collective, c.Algorithm, c.Ranks)
	return err == nil && !(n.Ordered && r.Commutative) && !(n.Uneven && r.EqualParts)
}

// Candidates returns the algorithms of a collective: those of the catalog with the standard
// values of their parameters, after others that are given with theirs.
func Candidates(c sched.Collective, others ...string) []string {
	var all []string
	for _, a := range algo.For(c) {
		others = append(others, a.Name)
	}
	for _, spec := range others {
		if spec != "" && !slices.Contains(all, spec) {
			all = append(all, spec)
		}
	}
	return all
}

// possible returns the calls by some algorithms, and their schedules, without those that do
// not fit.
func (c Call) possible(algorithms []string, constraints Constraints) (calls []Call, all []*sched.Schedule) {
	for _, spec := range algorithms {
		c.Algorithm = spec
		s, err := c.Schedule()
		switch {
		case err != nil, !constraints.allow(c):
		case slices.ContainsFunc(all, func(other *sched.Schedule) bool { return other.Algorithm == s.Algorithm }):
		default:
			calls, all = append(calls, c), append(all, s)
		}
	}
	return calls, all
}

// maxComparedRanks is among how many ranks all algorithms are simulated. The programs of more
// take long to make.
const maxComparedRanks = 1 << 10

// Rivals returns the times of a call by some algorithms, the least first. It leaves out those
// that do not fit the call, and those with which all together have too many messages. Among more than 1024
// ranks there are none.
func (m *Machine) Rivals(c Call, algorithms []string, constraints Constraints) (all []Rival) {
	if c.Ranks > maxComparedRanks {
		return nil
	}
	calls, schedules := c.possible(algorithms, constraints)
	messages := 0.0
	for i, call := range calls {
		n := schedules[i].Size().Messages
		if messages+n > 2*budget {
			continue
		}
		messages += n
		e, err := m.experiment(call, schedules[i])
		if err != nil {
			continue
		}
		if time, err := e.run(); err == nil {
			all = append(all, Rival{schedules[i].Algorithm, time})
		}
	}
	slices.SortStableFunc(all, func(a, b Rival) int { return cmp.Compare(a.Time, b.Time) })
	return all
}
