package selection

import (
	"strings"

	"github.com/chorale-go/chorale/sched"
)

// A rule takes the calls with at least so many ranks and bytes. Bytes are those of
// the whole vector; where the vector is one part per rank, those of one part.
type rule struct {
	minRanks, minBytes int
	algorithm          string
	why                string
}

// rules are those of each collective. Of the rules of a collective that fit a
// call, the last one counts.
type rules map[sched.Collective][]rule

// A table is the selection of one transport. Its rules come after those of every
// transport.
//
// In a scan of oversubscribed ranks, each waits once and sends one message, where recursive
// doubling takes 1.7 times as long in the median: with 3, 4, 8 and 16 ranks on two
// processors, in November 2026, by
//
//	chorale bench scan exscan -n 3,4,8,16 --algorithm linear,recursive-doubling
//
// More ranks may have many processors, and then the number of steps counts.
type table struct {
	rules          rules
	oversubscribed rules // after the other rules, where ranks outnumber processors
}

// function has the rules for operations that are functions of the caller's, which take longer
// than a kernel: ranks share the calls where they otherwise combine whole vectors each. With two
// ranks on two processors, in November 2026, an allreduce of 1 MiB took 700 µs and then 354 over
// shared memory, by
//
//	chorale bench allreduce:func -n 2 --algorithm recursive-doubling,recursive-halving
var function = rules{
	sched.AllReduce: {
		{0, 256 << 10, "recursive-halving", "all ranks share the calls of the function"},
	},
}

// tables has the table of each transport by the transport's name.
var tables = map[string]table{
	"inproc": inproc,
	"shm":    shm,
	"tcp":    tcp,
}

// A scope is the calls that a set of rules is for.
type scope struct {
	transport      string // "" for every transport
	oversubscribed bool
	function       bool
	hosts          bool // for ranks that share hosts
}

// A section is a set of rules, with its scope.
type section struct {
	rules rules
	scope scope
}

// sections returns the rules for a call, the most general ones first.
func sections(q Query) []section {
	of := tables[q.Transport]
	all := []section{{rules: base}, {of.rules, scope{transport: q.Transport}}}
	if q.Function {
		all = append(all, section{function, scope{function: true}})
	}
	if q.oversubscribed() {
		all = append(all, section{of.oversubscribed, scope{transport: q.Transport, oversubscribed: true}})
	}
	if q.Hosts != "" {
		all = append(all, section{hosts, scope{hosts: true}})
		if !strings.Contains(q.Hosts, ":") {
			all = append(all, section{hostsByBlock, scope{hosts: true}})
		}
	}
	return all
}
