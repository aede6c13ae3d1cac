package selection

import (
	"sync"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/sched"
)

// A kind is what the choices of the tables depend on beside the bytes.
type kind struct {
	collective     sched.Collective
	ranks          int
	ordered        bool
	function       bool
	uneven         bool
	oversubscribed bool
	transport      string
	hosts          string
}

// kindsMax bounds the kinds of calls whose choices are kept. A job with more of them finds some
// again.
const kindsMax = 1024

// choices keeps what the tables say for each kind of calls that was made: whether an algorithm
// takes a call takes longer to find out than all the rest.
var choices cache

type cache struct {
	mu   sync.RWMutex
	kept map[kind][]Choice
}

// of returns the choices for calls of one kind: the first one counts whose rule is for no more
// bytes than the call has.
func (c *cache) of(q Query) []Choice {
	k := kind{q.Collective, q.Ranks, q.Ordered, q.Function, q.Uneven, q.oversubscribed(), q.Transport, q.Hosts}
	c.mu.RLock()
	list, known := c.kept[k]
	c.mu.RUnlock()
	if known {
		return list
	}
	list = find(q)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil || len(c.kept) >= kindsMax {
		c.kept = make(map[kind][]Choice)
	}
	c.kept[k] = list
	return list
}

// find returns the choices for calls of the kind of q, from the last of the rules that fit them
// on. A rule for as many bytes as a later one, or more, never counts.
func find(q Query) (list []Choice) {
	all := sections(q)
	for s := len(all) - 1; s >= 0; s-- {
		rules := all[s].rules[q.Collective]
		for r := len(rules) - 1; r >= 0; r-- {
			rule := rules[r]
			if n := len(list); n > 0 && rule.minBytes >= list[n-1].rule.minBytes {
				continue
			}
			if algorithm, ok := rule.fits(q); ok {
				list = append(list, Choice{Algorithm: algorithm, rule: rule, of: all[s].scope, ordered: q.Ordered, uneven: q.Uneven})
			}
		}
	}
	return list
}

// fits reports whether the rule is for as many ranks as the call has, and its algorithm takes
// them, their hosts, the operation and the parts. It returns the algorithm, with the hosts.
func (r rule) fits(q Query) (algorithm string, ok bool) {
	if q.Ranks < r.minRanks {
		return "", false
	}
	algorithm = WithHosts(q.Collective, r.algorithm, q.Hosts)
	only, err := algo.Restricted(q.Collective, algorithm, q.Ranks)
	return algorithm, err == nil && !(q.Ordered && only.Commutative) && !(q.Uneven && only.EqualParts)
}
