package selection

import "github.com/chorale-go/chorale/sched"

// inproc is for goroutines of one process. A message is read where it lies, so
// whatever goes straight to its destination wins. The rules follow measurements
// with 2, 4 and 8 ranks on two processors in November 2026, by
//
//	chorale bench OP -n 2,4,8 --transport inproc --algorithm all
//
// Oversubscribed ranks do not run at the same time. There the work of all ranks
// together counts, and how often they wait. Those rules were measured with 32 and
// 128 ranks as well.
var inproc = table{
	rules: rules{
		sched.Bcast: {
			{3, 512 << 10, "knomial", "readers share a source that is in cache"},
		},
		sched.Scatter: {
			{0, 1 << 10, "direct", "every part is copied once, by its receiver"},
		},
		sched.Gather: {
			{0, 1 << 10, "direct", "every part is copied once, as it comes"},
		},
		sched.AllGather: {
			{0, 0, "direct", "every part is read where it lies"},
			{65, 0, "recursive-doubling", "fewest steps and peers"},
			{65, 64 << 10, "ring", "fewest bytes and peers"},
		},
		sched.ReduceScatter: {
			{0, 0, "direct", "every part is read where it lies"},
			{65, 0, "recursive-doubling", "fewest steps and peers, for any operation"},
			{65, 0, "recursive-halving", "fewest steps and peers"},
		},
		sched.AllToAll: {
			{0, 0, "direct", "every part is read where it lies"},
			{65, 0, "pairwise", "one peer at a time"},
			{65, 0, "bruck", "fewest steps and peers"},
			{65, 256, "pairwise", "one peer at a time"},
		},
	},
	oversubscribed: rules{
		sched.Bcast: {
			{3, 0, "linear", "fewest waits"},
			{3, 2 << 10, "knomial", "few waits, and readers share a source that is in cache"},
		},
		sched.Reduce: {
			{3, 0, "knomial", "few waits"},
			{8, 8 << 10, "binomial", "what comes in is in cache"},
			{3, 64 << 10, "knomial", "each vector is read once"},
		},
		sched.Scatter: {
			{3, 0, "direct", "fewest waits"},
		},
		sched.Gather: {
			{3, 0, "direct", "fewest waits"},
		},
		sched.AllReduce: {
			{3, 0, "direct", "fewest waits"},
			{8, 0, "linear", "few waits and messages"},
			{3, 2 << 10, "linear", "few waits and messages"},
			{32, 2 << 10, "tree", "few waits and messages, and the combining is shared"},
			{3, 256 << 10, "recursive-halving", "fewest bytes"},
		},
		sched.Scan: {
			{3, 0, "linear", "fewest waits and messages"},
			{17, 0, "recursive-doubling", "fewest steps"},
		},
		sched.ExScan: {
			{4, 0, "linear", "fewest waits and messages"},
			{4, 512 << 10, "recursive-doubling", "fewest steps"},
			{17, 0, "recursive-doubling", "fewest steps"},
		},
		sched.Barrier: {
			{3, 0, "direct", "fewest waits"},
			{6, 0, "linear", "few waits and messages"},
		},
	},
}
