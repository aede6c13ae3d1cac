package selection

import "github.com/chorale-go/chorale/sched"

// tcp is for processes that exchange messages over TCP. The rules for up to 16
// ranks follow measurements with 2, 4 and 8 ranks on two processors in November
// 2026, by
//
//	chorale bench OP -n 2,4,8 --transport tcp --algorithm all
//
// More than 16 ranks are taken to be on several machines, and their rules follow
// the literature.
//
// Oversubscribed ranks do not run at the same time. There the work of all ranks
// together counts, and how often they wait. Those rules were measured with 24
// ranks as well.
var tcp = table{
	rules: rules{
		sched.Bcast: {
			{17, 512 << 10, "scatter-allgather", "no rank sends the vector twice"},
		},
		sched.Reduce: {
			{0, 0, "binomial", "every vector is combined as it comes in"},
			{17, 64 << 10, "reduce-scatter-gather", "all ranks share the combining"},
		},
		sched.Scatter: {
			{0, 1 << 10, "linear", "every part is sent once"},
			{17, 0, "binomial", "fewest steps"},
		},
		sched.Gather: {
			{0, 1 << 10, "linear", "every part is sent once"},
			{17, 0, "binomial", "fewest steps"},
		},
		sched.AllReduce: {
			{0, 2 << 20, "recursive-halving", "fewest bytes, and all ranks share the combining"},
			{4, 16 << 10, "recursive-doubling", "fewest steps"},
			{4, 64 << 10, "recursive-halving", "fewest bytes, and all ranks share the combining"},
		},
		sched.AllToAll: {
			{4, 0, "bruck", "fewest steps"},
			{4, 0, "hypercube", "fewest steps, each with one peer"},
			{4, 8 << 10, "pairwise", "fewest bytes"},
			{17, 256, "pairwise", "fewest bytes"},
		},
	},
	oversubscribed: rules{
		sched.Bcast: {
			{3, 0, "linear", "fewest waits"},
			{3, 8 << 10, "binomial", "the root sends fewest messages"},
			{17, 0, "binomial", "fewest steps"},
			{17, 512 << 10, "scatter-allgather", "no rank sends the vector twice"},
		},
		sched.Reduce: {
			{3, 0, "linear", "fewest waits"},
			{3, 8 << 10, "binomial", "every vector is combined as it comes in"},
			{12, 0, "binomial", "every vector is combined as it comes in"},
			{17, 64 << 10, "reduce-scatter-gather", "all ranks share the combining"},
		},
		sched.Scatter: {
			{3, 0, "direct", "one step, and every part is sent once"},
			{4, 0, "linear", "fewest waits, and every part is sent once"},
			{4, 512, "direct", "one step, and every part is sent once"},
			{8, 0, "direct", "one step, and every part is sent once"},
			{3, 64 << 10, "linear", "fewest waits, and every part is sent once"},
			{17, 0, "binomial", "fewest steps"},
			{17, 64 << 10, "linear", "every part is sent once"},
		},
		sched.Gather: {
			{3, 0, "linear", "fewest waits, and every part is sent once"},
			{12, 0, "binomial", "fewest steps"},
			{12, 1 << 10, "linear", "every part is sent once"},
			{17, 0, "binomial", "fewest steps"},
			{17, 64 << 10, "linear", "every part is sent once"},
		},
		sched.AllGather: {
			{4, 0, "linear", "few waits and messages"},
			{4, 512, "recursive-doubling", "few waits, and every part is sent once"},
			{4, 64 << 10, "ring", "fewest bytes, between neighbors only"},
			{4, 64 << 10, "neighbor-exchange", "few waits, between neighbors only"},
			{8, 0, "linear", "few waits and messages"},
			{8, 16 << 10, "recursive-doubling", "few waits, and every part is sent once"},
			{8, 64 << 10, "neighbor-exchange", "few waits, between neighbors only"},
			{8, 256 << 10, "ring", "fewest bytes, between neighbors only"},
		},
		sched.AllReduce: {
			{4, 0, "hierarchical", "few waits and messages"},
			{4, 128 << 10, "recursive-halving", "fewest bytes, and all ranks share the combining"},
			{8, 0, "linear", "few waits and messages"},
			{8, 4 << 10, "tree", "few waits and messages, and the combining is shared"},
			{8, 128 << 10, "recursive-halving", "fewest bytes, and all ranks share the combining"},
			{8, 512 << 10, "tree", "fewest waits"},
			{17, 0, "tree", "few waits and messages, and the combining is shared"},
			{17, 64 << 10, "recursive-halving", "fewest bytes, and all ranks share the combining"},
		},
		sched.Scan: {
			{3, 0, "linear", "fewest waits and messages"},
			{17, 0, "recursive-doubling", "fewest steps"},
		},
		sched.ExScan: {
			{4, 0, "linear", "fewest waits and messages"},
			{17, 0, "recursive-doubling", "fewest steps"},
		},
		sched.Barrier: {
			{3, 0, "linear", "fewest waits and messages"},
		},
	},
}
