package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// All ranks send their parts to the root at once, in a single step, and the root
// takes them as they come: the direct scatter reversed.
//
// Cost: (p − 1)(α + n/p β) with one port. With a link from each rank to the
// root, all of them used at once, α + n/p β.
//
// Prefer it where a rank that is late should not hold up the others.
var gatherDirect = Algorithm{
	Collective: sched.Gather,
	Name:       "direct",
	Formula:    "(p − 1)(α + n/p β); all ports: α + n/p β",
	Prefer:     "long parts, or ranks that arrive at different times",
	cost:       func(c call, n float64) model.Cost { return moves(c.p-1, n/float64(c.p)) },
	build: func(c call) generator {
		return generator{blocks: c.p, program: func(b *sched.Builder, rank int) {
			if rank != c.root {
				b.Send(sched.In, one(rank), c.root)
				return
			}
			b.Copy(sched.In, one(rank), sched.Out, rank, sched.Replace)
			for i := 1; i < c.p; i++ {
				from := (rank + i) % c.p
				b.Recv(from, sched.Out, one(from), sched.Replace)
			}
		}}
	},
}
