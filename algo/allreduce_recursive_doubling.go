package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Ranks exchange their whole vectors and combine them, with partners at
// distance 1, 2, 4, …: the ranks that a vector stands for double with every
// step. It is halving-exchange without a stage that halves.
//
// Cost, p a power of two: lg p (α + nβ + nγ). Other p fold: 2α + 2nβ + nγ more,
// ⌊lg p⌋ + 2 steps in all.
//
// Ranks stay in order. Prefer it for short vectors: no way takes fewer steps if
// p is a power of two.
//
// Foster, 11.2 (the simple exchange); Grama et al., 4.3; Thakur, Rabenseifner,
// Gropp 2005.
var allreduceRecursiveDoubling = Algorithm{
	Collective: sched.AllReduce,
	Name:       "recursive-doubling",
	Formula:    "lg p (α + nβ + nγ); p no power of two: 2α + 2nβ + nγ more",
	Prefer:     "short vectors",
	cost:       func(c call, n float64) model.Cost { return halvingExchangeCost(c.p, 0, n) },
	build:      func(c call) generator { return halvingExchangePlan(c.p, 0) },
}
