package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The root sends each rank its part, one after another. Nothing is sent twice.
//
// Cost: (p − 1)(α + n/p β).
//
// The term in n is the least there is. Prefer it when parts are so long that
// start-up does not matter: no rank handles another's part.
//
// Grama et al., 4.4.
var scatterLinear = Algorithm{
	Collective: sched.Scatter,
	Name:       "linear",
	Formula:    "(p − 1)(α + n/p β)",
	Prefer:     "long parts",
	cost:       func(c call, n float64) model.Cost { return moves(c.p-1, n/float64(c.p)) },
	build: func(c call) generator {
		return generator{blocks: c.p, program: func(b *sched.Builder, rank int) {
			if rank != c.root {
				b.Recv(c.root, sched.Out, one(rank), sched.Replace)
				return
			}
			b.Copy(sched.In, one(rank), sched.Out, rank, sched.Replace)
			for r := range c.p {
				if r != c.root {
					b.Send(sched.In, one(r), r)
					b.EndStep()
				}
			}
		}}
	},
}
