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
			disseminate(b, everyone(c.p), rank)
		}}
	},
}

// disseminate lets all positions of a sequence hear of each other.
func disseminate(b *sched.Builder, l sequence, me int) {
	n := l.size()
	for d := 1; d < n; d *= 2 {
		token(b, l.rank((me+d)%n), l.rank((me-d+n)%n))
	}
}
