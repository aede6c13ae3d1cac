package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The root sends all ranks their parts at once, in a single step: linear without
// a step's end after each message.
//
// Cost: (p − 1)(α + n/p β) with one port. With a link from the root to each
// rank, all of them used at once, α + n/p β.
//
// Prefer it where a rank that is late should not hold up the others, and where
// every rank fetches its part itself.
var scatterDirect = Algorithm{
	Collective: sched.Scatter,
	Name:       "direct",
	Formula:    "(p − 1)(α + n/p β); all ports: α + n/p β",
	Prefer:     "long parts, or ranks that arrive at different times",
	cost:       func(c call, n float64) model.Cost { return moves(c.p-1, n/float64(c.p)) },
	build: func(c call) generator {
		return generator{blocks: c.p, program: func(b *sched.Builder, rank int) {
			if rank != c.root {
				b.Recv(c.root, sched.Out, one(rank), sched.Replace)
				return
			}
			b.Copy(sched.In, one(rank), sched.Out, rank, sched.Replace)
			for i := 1; i < c.p; i++ {
				to := (rank + i) % c.p
				b.Send(sched.In, one(to), to)
			}
		}}
	},
}
