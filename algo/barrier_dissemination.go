package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Ranks stand in a circle. Each tells the one 1 position further that it has come,
// then the one 2 further, then 4, and so on: after k steps it has heard of the
// 2^k − 1 ranks before it.
//
// Cost: ⌈lg p⌉ α, the least there is, for any p.
//
// It is the barrier to prefer.
//
// Hensgen, Finkel, Manber, Two Algorithms for Barrier Synchronization, 1988.
var barrierDissemination = Algorithm{
	Collective: sched.Barrier,
	Name:       "dissemination",
	Formula:    "⌈lg p⌉ α",
	Prefer:     "always",
	cost:       func(c call, _ float64) model.Cost { return moves(ceilLog(c.p), 0) },
	build: func(c call) generator {
		return generator{program: func(b *sched.Builder, rank int) {
			for d := 1; d < c.p; d *= 2 {
				token(b, (rank+d)%c.p, (rank-d+c.p)%c.p)
			}
		}}
	},
}
