package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Rank 0 takes the vector of one rank after another, in order, and then sends
// the result to one after another.
//
// Cost: (p − 1)(2α + 2nβ + nγ).
//
// It is the simplest program, and combines strictly from left to right.
//
// Grama et al., 4.3.
var allreduceLinear = Algorithm{
	Collective: sched.AllReduce,
	Name:       "linear",
	Formula:    "(p − 1)(2α + 2nβ + nγ)",
	Prefer:     "a sum from left to right; a yardstick for the others",
	cost: func(c call, n float64) model.Cost {
		return reduceLinear.cost(c, n).Plus(bcastLinear.cost(c, n))
	},
	build: func(c call) generator {
		return generator{blocks: 1, program: func(b *sched.Builder, rank int) {
			reduceOneByOne(b, c.p, 0, rank)
			b.EndStep()
			sendOneByOne(b, c.p, 0, rank)
		}}
	},
}
