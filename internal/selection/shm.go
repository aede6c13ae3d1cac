package selection

import "github.com/chorale-go/chorale/sched"

// shm is for processes that share memory.
//
// Oversubscribed ranks do not run at the same time. There the work of all ranks
// together counts, and how often they wait. The rules follow measurements with 2,
// 4 and 8 ranks on two processors in November 2026, by
//
//	chorale bench OP -n 2,4,8 --transport shm --algorithm all
var shm = table{
	rules: rules{
		sched.Reduce: {
			{0, 0, "binomial", "fewest steps"},
			{3, 64 << 10, "reduce-scatter-gather", "all ranks share the combining"},
		},
		sched.Scatter: {
			{3, 16 << 10, "direct", "every part is copied once, by its receiver"},
		},
		sched.Gather: {
			{3, 16 << 10, "direct", "every part is copied once, as it comes"},
		},
		sched.AllGather: {
			{0, 0, "direct", "written once, and read by all"},
			{65, 0, "recursive-doubling", "fewest steps and peers"},
			{65, 64 << 10, "ring", "fewest bytes and peers"},
		},
		sched.ReduceScatter: {
			{3, 0, "direct", "fewest waits"},
			{65, 0, "recursive-halving", "fewest steps and peers"},
		},
		sched.AllReduce: {
			{3, 1 << 20, "recursive-halving", "fewest bytes, and all ranks share the combining"},
		},
		sched.AllToAll: {
			{3, 0, "direct", "fewest waits"},
			{65, 0, "bruck", "fewest steps and peers"},
			{65, 256, "pairwise", "one peer at a time"},
		},
	},
	oversubscribed: rules{
		sched.Bcast: {
			{3, 0, "knomial,k=64", "written once, and read by all"},
		},
		sched.Reduce: {
			{3, 0, "knomial", "few waits"},
			{8, 0, "linear", "fewest waits"},
			{3, 4 << 10, "knomial", "few waits"},
		},
		sched.Scatter: {
			{3, 0, "direct", "every part is copied once, by its receiver"},
		},
		sched.Gather: {
			{3, 0, "direct", "every part is copied once, as it comes"},
		},
		sched.AllReduce: {
			{3, 0, "direct", "written once, and read by all"},
			{33, 0, "recursive-doubling", "fewest steps and peers"},
			{3, 16 << 10, "recursive-halving", "fewest bytes, and all ranks share the combining"},
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
			{3, 0, "direct", "written once, and read by all"},
			{12, 0, "linear", "few waits and messages"},
		},
	},
}
