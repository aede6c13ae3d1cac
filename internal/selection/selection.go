package selection

import (
	"fmt"
	"strings"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/sched"
)

// A Query is what the choice of an algorithm depends on.
type Query struct {
	Collective sched.Collective
	Ranks      int
	Bytes      int    // of the vector, or of one part where the vector is one part per rank
	Ordered    bool   // the operation does not commute
	Uneven     bool   // parts differ in length
	Transport  string // "inproc", "shm" or "tcp"; any other gets the rules of every transport
	Processors int    // that all ranks share; 0 if each rank has one, or the number is unknown
	Hosts      string // as algo.FormatHosts writes them; "" if no two ranks share a host, or all do, or it is unknown

	Machine *Machine // the rules of the profile, where all ranks share one host; nil: the built-in tables
}

// oversubscribed reports whether the ranks outnumber the processors.
func (q Query) oversubscribed() bool { return 0 < q.Processors && q.Processors < q.Ranks }

// A Choice is an algorithm, with its parameters if it has any, and the reason for
// it in words. Forced is the entry of CHORALE_ALGORITHM that says so, or "".
type Choice struct{ Algorithm, Why, Forced string }

// Choose returns the algorithm that a call takes if it names none. If the machine's
// profile has a rule that fits the call, that counts, and else of the built-in rules that
// fit it the last one.
//
// The environment variable CHORALE_ALGORITHM overrides the tables. It is a list
// like "allreduce=ring;bcast=chain,segment=8K", in which a name alone stands for
// every collective that has such an algorithm with these parameters. Commas may separate entries too,
// where another "collective=name" follows.
func Choose(q Query) (Choice, error) {
	if forced, err := override(Override(), q.Collective); err != nil || forced.spec != "" {
		return Choice{WithHosts(q.Collective, forced.spec, q.Hosts), Environment + " says so", forced.text}, err
	}
	if r := q.Machine.find(q); r != nil {
		return Choice{Algorithm: r.algorithm, Why: qualified(r.why, q)}, nil
	}
	return BuiltIn(q)
}

// BuiltIn returns the algorithm that the built-in tables choose: the last of the rules that
// fit the call.
func BuiltIn(q Query) (Choice, error) {
	var chosen rule
	var from section
	for _, s := range sections(q) {
		for _, r := range s.rules[q.Collective] {
			if r.fits(q) {
				chosen, from = r, s
			}
		}
	}
	if chosen.algorithm == "" {
		return Choice{}, fmt.Errorf("no algorithm for %+v", q)
	}
	why := chosen.why
	if bounds := chosen.bounds(from); bounds != "" {
		why += " (a rule for " + bounds + ")"
	}
	return Choice{Algorithm: WithHosts(q.Collective, chosen.algorithm, q.Hosts), Why: qualified(why, q)}, nil
}

// qualified adds to a reason what the call asks of its algorithm.
func qualified(why string, q Query) string {
	if q.Ordered {
		why += ", operands in rank order"
	}
	if q.Uneven {
		why += ", parts of different lengths"
	}
	return why
}

// fits reports whether the rule is for the call, and its algorithm takes the
// number of ranks, their hosts, the operation and the parts.
func (r rule) fits(q Query) bool {
	if q.Ranks < r.minRanks || q.Bytes < r.minBytes {
		return false
	}
	only, err := algo.Restricted(q.Collective, WithHosts(q.Collective, r.algorithm, q.Hosts), q.Ranks)
	return err == nil && !(q.Ordered && only.Commutative) && !(q.Uneven && only.EqualParts)
}

// bounds says which calls the rule is for, or nothing if it is for all.
func (r rule) bounds(of section) string {
	var all []string
	if r.minRanks > 0 {
		all = append(all, fmt.Sprintf("%d ranks or more", r.minRanks))
	}
	if r.minBytes > 0 {
		all = append(all, fmt.Sprintf("%d bytes or more", r.minBytes))
	}
	if of.transport != "" {
		all = append(all, "transport "+of.transport)
	}
	if of.oversubscribed {
		all = append(all, "more ranks than processors")
	}
	if of.hosts {
		all = append(all, "ranks that share hosts")
	}
	return strings.Join(all, ", ")
}
