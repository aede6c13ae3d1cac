package selection

import (
	"fmt"
	"strings"

	"github.com/chorale-go/chorale/sched"
)

// A Query is what the choice of an algorithm depends on.
type Query struct {
	Collective sched.Collective
	Ranks      int
	Bytes      int    // of the vector, or of one part where the vector is one part per rank
	Ordered    bool   // the operation does not commute
	Function   bool   // the operation is a function of the caller's
	Uneven     bool   // parts differ in length
	Transport  string // "inproc", "shm" or "tcp"; any other gets the rules of every transport
	Processors int    // that all ranks share; 0 if each rank has one, or the number is unknown
	Hosts      string // as algo.FormatHosts writes them; "" if no two ranks share a host, or all do, or it is unknown

	Machine *Machine // the rules of the profile, where all ranks share one host; nil: the built-in tables
}

// oversubscribed reports whether the ranks outnumber the processors.
func (q Query) oversubscribed() bool { return 0 < q.Processors && q.Processors < q.Ranks }

// OnHosts returns the query for ranks on several hosts, as algo.FormatHosts writes them, at most
// so many on each. Messages between hosts go over TCP, and a profile is of what one host does.
func (q Query) OnHosts(hosts string, most int) Query {
	q.Transport, q.Machine = "tcp", nil
	if most > 1 {
		q.Hosts = hosts
	}
	if q.Processors >= most {
		q.Processors = 0 // each rank has one
	}
	return q
}

// A Choice is an algorithm, with its parameters if it has any. Forced is the entry of
// CHORALE_ALGORITHM that says so, or "".
type Choice struct {
	Algorithm, Forced string

	rule            rule // that says so, of the tables or another one
	of              scope
	ordered, uneven bool // what the call asks of its algorithm
}

// Why returns the reason for a choice in words. They are written when they are asked for,
// because a call needs none.
func (c Choice) Why() string {
	why := c.rule.why
	if bounds := c.rule.bounds(c.of); bounds != "" {
		why += " (a rule for " + bounds + ")"
	}
	if c.ordered {
		why += ", operands in rank order"
	}
	if c.uneven {
		why += ", parts of different lengths"
	}
	return why
}

// Choose returns the algorithm that a call takes if it names none. If the machine's
// profile has a rule that fits the call, that counts, and else of the built-in rules that
// fit it the last one.
//
// The environment variable CHORALE_ALGORITHM overrides the tables. It is a list
// like "allreduce=ring;bcast=chain,segment=8K", in which a name alone stands for
// every collective that has such an algorithm with these parameters. Commas may separate entries too,
// where another "collective=name" follows.
func Choose(q Query) (Choice, error) {
	if list := Override(); list != "" {
		if forced, err := override(list, q.Collective); err != nil || forced.spec != "" {
			return Choice{Algorithm: WithHosts(q.Collective, forced.spec, q.Hosts), Forced: forced.text, rule: forcedRule}, err
		}
	}
	if r := q.Machine.find(q); r != nil {
		return Choice{Algorithm: r.algorithm, rule: rule{why: r.why}, ordered: q.Ordered, uneven: q.Uneven}, nil
	}
	return BuiltIn(q)
}

// forcedRule is the reason for what the environment forces.
var forcedRule = rule{why: Environment + " says so"}

// BuiltIn returns the algorithm that the built-in tables choose: the last of the rules that
// fit the call.
func BuiltIn(q Query) (Choice, error) {
	for _, c := range choices.of(q) {
		if q.Bytes >= c.rule.minBytes {
			return c, nil
		}
	}
	return Choice{}, fmt.Errorf("no algorithm for %+v", q)
}

// bounds says which calls the rule is for, or nothing if it is for all.
func (r rule) bounds(of scope) string {
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
	if of.function {
		all = append(all, "an operation of the caller's")
	}
	if of.hosts {
		all = append(all, "ranks that share hosts")
	}
	return strings.Join(all, ", ")
}
