package algo

import (
	"fmt"
	"strings"

	"github.com/chorale-go/chorale/sched"
)

// Restrictions are the calls that an algorithm does not serve.
type Restrictions struct {
	PowerOfTwo  bool // p must be a power of two
	EvenRanks   bool // p must be even, or 1
	Commutative bool // operators must commute
	EqualParts  bool // where each rank has a part, all must be equally long
	EqualBlocks bool // all blocks of the schedule must be equally long: other parts are padded, and copied for it
	AllPort     bool // ranks must use all their links at once, or else it costs more than it says
}

// Allow returns an error that names the restriction if p ranks are not allowed.
// The other restrictions do not depend on p: the caller checks them against the
// operator, the parts and the network.
func (r Restrictions) Allow(p int) error {
	switch {
	case r.PowerOfTwo && p&(p-1) != 0:
		return fmt.Errorf("needs a power of two of ranks, want %d or %d", 1<<floorLog(p), 2<<floorLog(p))
	case r.EvenRanks && p%2 != 0 && p > 1:
		return fmt.Errorf("needs an even number of ranks, want %d or %d", p-1, p+1)
	}
	return nil
}

// String names the restrictions, as in "power of two, commutative". It is empty
// if there are none.
func (r Restrictions) String() string {
	var names []string
	if r.PowerOfTwo {
		names = append(names, "power of two")
	}
	if r.EvenRanks {
		names = append(names, "even p")
	}
	if r.Commutative {
		names = append(names, "commutative")
	}
	if r.EqualParts {
		names = append(names, "equal parts")
	}
	if r.EqualBlocks {
		names = append(names, "equal blocks")
	}
	if r.AllPort {
		names = append(names, "all-port")
	}
	return strings.Join(names, ", ")
}

// Restricted returns the restrictions of an algorithm with the parameters that spec
// gives. They may be more than those of its row in the catalog. The arguments and the
// errors are those of [New].
func Restricted(c sched.Collective, spec string, p int) (Restrictions, error) {
	if IsFile(spec) {
		s, err := ReadFile(spec)
		if err != nil {
			return Restrictions{}, err
		}
		return Restrictions{Commutative: s.Commutative, EqualParts: s.Partitioned() && !s.Uneven && !s.EqualBlocks, EqualBlocks: s.EqualBlocks}, nil
	}
	if a := find(c, spec); a != nil && p > 0 && a.Restrictions.Allow(p) == nil {
		return a.Restrictions, nil // a name alone: the values of parameters by default restrict no more
	}
	a, call, _, err := resolve(c, spec, p, 0, 0)
	if err != nil {
		return Restrictions{}, err
	}
	return a.restrictions(call), nil
}

// restrictions returns those of a call. Where the ranks of a host do not follow each
// other, what the host combines is no run of ranks, and what it gathers no run of parts.
func (a *Algorithm) restrictions(c call) Restrictions {
	r := a.Restrictions
	if _, ok := c.values["hosts"]; ok && !c.byBlock() {
		parted := sched.Schedule{Collective: a.Collective}
		r.Commutative = r.Commutative || a.Collective.Combines()
		r.EqualParts = r.EqualParts || parted.Partitioned()
	}
	return r
}
