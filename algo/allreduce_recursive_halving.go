package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Partners exchange halves of their vectors, then halves of these, until each
// rank has combined a piece for all; the same steps reversed hand the pieces to
// everyone. It is halving-exchange with nothing but stages that halve, and also
// a reduce-scatter and an allgather, known as Rabenseifner's algorithm.
//
// Cost, p a power of two: 2 lg p α + 2n (p−1)/p β + n (p−1)/p γ. Other p fold:
// 2α + 2nβ + nγ more.
//
// Ranks stay in order. Prefer it for long vectors: for powers of two the terms
// in n are the least there is.
//
// Foster, 11.2; Rabenseifner 2004; Thakur, Rabenseifner, Gropp 2005.
var allreduceRecursiveHalving = Algorithm{
	Collective: sched.AllReduce,
	Name:       "recursive-halving",
	Formula:    "2 lg p α + 2n (p−1)/p β + n (p−1)/p γ; p no power of two: 2α + 2nβ + nγ more",
	Prefer:     "long vectors",
	cost: func(c call, n float64) model.Cost {
		return halvingExchangeCost(c.p, floorLog(c.p), n)
	},
	build: func(c call) generator { return halvingExchangePlan(c.p, floorLog(c.p)) },
}
