package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Every rank sends every other rank its block at once, in a single step. It is
// pairwise without the end of a step after each message: no rank waits for its
// turn, and the network orders the messages.
//
// Cost: (p − 1)(α + n/p β) with one port. With a link for each pair of ranks,
// all of them used at once, α + n/p β.
//
// Prefer it where messages in flight hide each other's start-up, and where
// ranks are not in step with each other. Each rank then has 2(p − 1) messages
// in flight.
var alltoallDirect = Algorithm{
	Collective: sched.AllToAll,
	Name:       "direct",
	Formula:    "(p − 1)(α + n/p β); all ports: α + n/p β",
	Prefer:     "few ranks, or ranks that arrive at different times",
	cost:       func(c call, n float64) model.Cost { return moves(c.p-1, n/float64(c.p)) },
	build: func(c call) generator {
		return generator{blocks: c.p, program: func(b *sched.Builder, rank int) {
			b.Copy(sched.In, one(rank), sched.Out, rank, sched.Replace)
			for i := 1; i < c.p; i++ {
				personal(b, (rank+i)%c.p, (rank-i+c.p)%c.p)
			}
		}}
	},
}
