package selection

import (
	"fmt"
	"strconv"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// A Machine has the rules of a machine's profile. They take the place of the built-in rules
// for the calls that they are for: no other numbers of ranks or processors, and no other
// bytes. The reason of each is written once, and its restrictions are looked up once, so that
// a choice takes no longer than one from the tables.
type Machine struct{ rules map[machineKey][]machineRule }

// A machineKey is what the rules for a call have in common.
type machineKey struct {
	collective        sched.Collective
	transport         string
	ranks, processors int
}

type machineRule struct {
	from, to       int // bytes
	algorithm, why string
	only           algo.Restrictions
}

// NewMachine returns the rules of selections. It returns nil, for the built-in tables, if
// there are none. A rule for what does not exist, or not for its ranks, is for no call.
func NewMachine(selections []model.Selection) *Machine {
	m := &Machine{make(map[machineKey][]machineRule)}
	for _, s := range selections {
		for _, r := range s.Rules {
			c, err := sched.ParseCollective(r.Collective)
			if err != nil || algo.IsFile(r.Algorithm) { // nobody vouches for a file on every rank
				continue
			}
			only, err := algo.Restricted(c, r.Algorithm, r.Ranks)
			if err != nil {
				continue
			}
			key := machineKey{c, s.Transport, r.Ranks, s.Processors}
			m.rules[key] = append(m.rules[key], machineRule{r.From, r.To, r.Algorithm, machineReason(s.Transport, r), only})
		}
	}
	if len(m.rules) == 0 {
		return nil
	}
	return m
}

// ValidateMachine returns an error if selections name a collective or an algorithm that does
// not exist.
func ValidateMachine(selections []model.Selection) error {
	for _, s := range selections {
		for i, r := range s.Rules {
			c, err := sched.ParseCollective(r.Collective)
			switch {
			case err != nil:
			case algo.IsFile(r.Algorithm):
				err = fmt.Errorf("%s: want an algorithm of the catalog", r.Algorithm)
			default:
				err = algo.Validate(c, r.Algorithm)
			}
			if err != nil {
				return fmt.Errorf("rule %d of the selection for %s: %w: chorale tune --select makes new rules", i+1, s.Transport, err)
			}
		}
	}
	return nil
}

// machineReason says why a rule is there.
func machineReason(transport string, r model.Rule) string {
	how := "measured"
	if r.Predicted {
		how = "predicted"
	}
	microseconds := func(x float64) string { return strconv.FormatFloat(x, 'g', 3, 64) + " µs" }
	return fmt.Sprintf("%s on this machine for %s bytes: %s, and %s by %s (the profile's rule for %d ranks, %d to %d bytes, transport %s)",
		how, algo.FormatBytes(r.Bytes), microseconds(r.Time), microseconds(r.BuiltInTime), r.BuiltIn, r.Ranks, r.From, r.To, transport)
}

// find returns the rule for a call, or nil.
func (m *Machine) find(q Query) *machineRule {
	if m == nil || q.Hosts != "" {
		return nil
	}
	rules := m.rules[machineKey{q.Collective, q.Transport, q.Ranks, q.Processors}]
	for i := range rules {
		if r := &rules[i]; r.from <= q.Bytes && q.Bytes <= r.to && !(q.Ordered && r.only.Commutative) && !(q.Uneven && r.only.EqualParts) {
			return r
		}
	}
	return nil
}
