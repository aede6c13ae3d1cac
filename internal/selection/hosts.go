package selection

import (
	"slices"
	"strings"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/sched"
)

// Between hosts a message costs many times what it costs within one, and all ranks of a
// host share its network. So as little as possible goes between hosts, and in few
// messages. The rules follow the literature and what MPICH and Open MPI do among nodes.
//
// What is done between up to 16 ranks' hosts follows measurements with 2 ranks on each of 2
// and 4 hosts, two processors in all, in November 2026, by
//
//	chorale bench OP --hosts … --algorithm hierarchical,between=…
//
// Few messages win up to 1 MiB there: pieces of a bcast of 64 KiB take 1.6 times as long as
// the whole, and 8 bytes that go round a ring of all ranks 4 times as long as by recursive
// doubling. Beyond, the costs of the algorithm decide.
//
// An algorithm that does not fit the placement, because it would combine out of rank
// order or take parts of different lengths for equal ones, leaves the call to the rules
// of the transport.
var hosts = rules{
	sched.Bcast: {
		{0, 0, "hierarchical,between=binomial", "each host gets the vector once, in one message"},
		{0, 1 << 20, "hierarchical", "each host gets the vector once"},
		{17, 0, "hierarchical", "each host gets the vector once"},
	},
	sched.Reduce: {
		{0, 0, "hierarchical,between=binomial", "each host sends one vector, in one message"},
		{0, 1 << 20, "hierarchical", "each host sends one vector"},
		{17, 0, "hierarchical", "each host sends one vector"},
	},
	sched.Scatter: {
		{0, 0, "hierarchical", "each host gets its parts in one message"},
		{0, 64 << 10, "linear", "every part is sent once"},
	},
	sched.Gather: {
		{0, 0, "hierarchical", "each host sends its parts in one message"},
		{0, 64 << 10, "linear", "every part is sent once"},
	},
	sched.AllGather: {
		{0, 0, "hierarchical,between=recursive-doubling", "each host gets the parts of others in few messages"},
		{0, 1 << 20, "hierarchical", "each host gets every part about once"},
		{17, 0, "hierarchical", "each host gets every part about once"},
	},
	sched.ReduceScatter: {
		{0, 0, "hierarchical", "each host sends what it has combined"},
	},
	sched.AllReduce: {
		{0, 0, "hierarchical", "each host sends what it has combined"},
	},
	sched.Barrier: {
		{0, 0, "hierarchical", "one rank of each host waits for the others"},
	},
}

// hostsByBlock is for ranks whose neighbors share a host, after the rules for hosts. There an
// algorithm that goes from each rank to the next crosses to each host once. The rules follow
// the simulation of 32 to 128 ranks, for networks of 20 µs and 1.25 or 5 GB/s, as in
//
//	chorale sim bcast --topology hosts:2x16,hosts:4x8,hosts:16x4 --ts 1 --tw 0.0016 \
//	  --ts-between 20 --tw-between 0.0064 --congestion share -m 512K,1M,4M --best 2
//
// where a chain takes 0.5 to 0.9 of the time of two levels from 32 MiB on.
var hostsByBlock = rules{
	sched.Bcast: {
		{17, 32 << 20, "chain", "the vector goes through all hosts in pieces, one after another"},
		{129, 0, "hierarchical", "each host gets the vector once"},
	},
}

// WithHosts returns an algorithm with the hosts of the ranks as its parameter, if it
// takes hosts, and spec says nothing of them. Hosts are as in [Query].
func WithHosts(c sched.Collective, spec, hosts string) string {
	if hosts == "" {
		return spec
	}
	name, params, _ := strings.Cut(spec, ",")
	a, err := algo.Lookup(c, name)
	if err != nil || !slices.ContainsFunc(a.Params, func(p algo.Param) bool { return p.Key == "hosts" }) {
		return spec
	}
	for param := range strings.SplitSeq(params, ",") {
		if key, _, _ := strings.Cut(param, "="); key == "hosts" || key == "group" {
			return spec
		}
	}
	return spec + ",hosts=" + hosts
}
