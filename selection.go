package chorale

import (
	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/sched"
)

// A rule takes the calls of one collective with at least so many ranks and
// bytes. Bytes are those of the whole vector; where it is one part per rank,
// those of a part.
type rule struct {
	collective   sched.Collective
	ranks, bytes int
	algorithm    string
}

// rules is the selection: the last rule that fits is taken. Few steps win
// while messages are small, few bytes when they are large.
var rules = []rule{
	{sched.Bcast, 0, 0, "binomial"},
	{sched.Bcast, 8, 512 << 10, "scatter-allgather"},
	{sched.Reduce, 0, 0, "binomial"},
	{sched.Reduce, 4, 64 << 10, "reduce-scatter-gather"},
	{sched.Scatter, 0, 0, "binomial"},
	{sched.Gather, 0, 0, "binomial"},
	{sched.AllGather, 0, 0, "recursive-doubling"},
	{sched.AllGather, 4, 64 << 10, "ring"},
	{sched.ReduceScatter, 0, 0, "recursive-halving"},
	{sched.AllReduce, 0, 0, "recursive-doubling"},
	{sched.AllReduce, 4, 16 << 10, "recursive-halving"},
	{sched.Barrier, 0, 0, "dissemination"},
}

// choose returns the algorithm for a call that names none.
func choose(c sched.Collective, ranks, bytes int, commutative bool) string {
	if c == sched.ReduceScatter && !commutative {
		return "recursive-doubling"
	}
	best := ""
	for _, r := range rules {
		if r.collective == c && ranks >= r.ranks && bytes >= r.bytes {
			best = r.algorithm
		}
	}
	return best
}

// Algorithms returns the names of the algorithms of a collective, as in
// "allreduce"; none if there is no such collective.
func Algorithms(collective string) []string {
	c, err := sched.ParseCollective(collective)
	if err != nil {
		return nil
	}
	var names []string
	for _, a := range algo.For(c) {
		names = append(names, a.Name)
	}
	return names
}
