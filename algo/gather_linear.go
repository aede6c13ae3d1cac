package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The root takes each rank's part, one after another: the linear scatter
// reversed.
//
// Cost: (p − 1)(α + n/p β).
//
// Prefer it when parts are so long that start-up does not matter: no rank
// handles another's part.
//
// Grama et al., 4.4.
var gatherLinear = Algorithm{
	Collective: sched.Gather,
	Name:       "linear",
	Formula:    "(p − 1)(α + n/p β)",
	Prefer:     "long parts",
	cost:       func(c call, n float64) model.Cost { return moves(c.p-1, n/float64(c.p)) },
	build: func(c call) generator {
		return generator{blocks: c.p, program: func(b *sched.Builder, rank int) {
			if rank != c.root {
				b.Send(sched.In, one(rank), c.root)
				return
			}
			b.Copy(sched.In, one(rank), sched.Out, rank, sched.Replace)
			for r := range c.p {
				if r != c.root {
					b.Recv(r, sched.Out, one(r), sched.Replace)
					b.EndStep()
				}
			}
		}}
	},
}
