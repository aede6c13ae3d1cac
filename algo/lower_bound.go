package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// LowerBound returns the cost that no algorithm for a collective can avoid, on
// p ranks with one port each and a vector of n words: messages one after
// another, words that some rank sends or receives, and words that some rank
// combines. Each of the three can be reached, but seldom all at once.
//
// A message is needed for each doubling of the number of ranks that have the
// data, or whose data have been combined. A rank that lacks data must receive
// it. A reduction moves each word of p−1 ranks at least once, and an allreduce
// the result as often again. All ranks together combine p−1 vectors, and share
// the work at best.
//
// Chan, Heimlich, Purkayastha, van de Geijn, Collective Communication: Theory,
// Practice, and Experience, 2007; for the words of an allreduce Patarasuk, Yuan
// 2009.
func LowerBound(c sched.Collective, p int, n float64) model.Cost {
	if p <= 1 {
		return model.Cost{}
	}
	bound := model.Cost{Startups: float64(ceilLog(p))}
	part := share(n, p)
	switch c {
	case sched.Bcast, sched.Reduce, sched.Scan, sched.ExScan:
		bound.Words = n
	case sched.Scatter, sched.Gather, sched.AllGather, sched.ReduceScatter, sched.AllToAll:
		bound.Words = part
	case sched.AllReduce:
		bound.Words = 2 * part
	case sched.Shift: // by any distance but 0
		bound = model.Cost{Startups: 1, Words: n}
	}
	switch c {
	case sched.Reduce, sched.AllReduce, sched.ReduceScatter, sched.Scan:
		bound.Combines = part
	case sched.ExScan: // the first two ranks have nothing to combine
		bound.Combines = n * float64(p-2) / float64(p)
	}
	return bound
}
