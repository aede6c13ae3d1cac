package selection

import "github.com/chorale-go/chorale/sched"

// base holds for every transport. Few steps win while messages are short, few
// bytes when they are long.
var base = rules{
	sched.Bcast: {
		{0, 0, "binomial", "fewest steps"},
	},
	sched.Reduce: {
		{0, 0, "binomial", "fewest steps"},
		{3, 64 << 10, "reduce-scatter-gather", "all ranks share the combining"},
	},
	sched.Scatter: {
		{0, 0, "binomial", "fewest steps"},
	},
	sched.Gather: {
		{0, 0, "binomial", "fewest steps"},
	},
	sched.AllGather: {
		{0, 0, "recursive-doubling", "fewest steps"},
		{4, 64 << 10, "ring", "fewest bytes, between neighbors only"},
	},
	sched.ReduceScatter: {
		{0, 0, "recursive-doubling", "fewest steps, for any operation"},
		{0, 0, "recursive-halving", "fewest steps and bytes"},
	},
	sched.AllReduce: {
		{0, 0, "recursive-doubling", "fewest steps"},
		{4, 16 << 10, "recursive-halving", "fewest bytes, and all ranks share the combining"},
	},
	sched.AllToAll: {
		{0, 0, "pairwise", "fewest bytes"},
	},
	sched.Scan: {
		{0, 0, "recursive-doubling", "fewest steps"},
	},
	sched.ExScan: {
		{0, 0, "recursive-doubling", "fewest steps"},
	},
	sched.Barrier: {
		{0, 0, "dissemination", "fewest steps"},
	},
	sched.Shift: {
		{0, 0, "direct", "one step"},
	},
}
