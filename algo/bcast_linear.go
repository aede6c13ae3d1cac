package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The root sends to one rank after another. The root is the bottleneck, and all
// links but one are idle.
//
// Cost: (p − 1)(α + nβ).
//
// It is the simplest program; for two or three ranks nothing is faster.
//
// Grama et al., Introduction to Parallel Computing, 4.1.
var bcastLinear = Algorithm{
	Collective: sched.Bcast,
	Name:       "linear",
	Formula:    "(p − 1)(α + nβ)",
	Prefer:     "two or three ranks; a yardstick for the others",
	cost:       func(c call, n float64) model.Cost { return moves(c.p-1, n) },
	build: func(c call) generator {
		return generator{blocks: 1, program: func(b *sched.Builder, rank int) {
			if rank == c.root {
				b.Copy(sched.In, whole(1), sched.Out, 0, sched.Replace)
			}
			sendOneByOne(b, c.p, c.root, rank)
		}}
	},
}

// sendOneByOne hands block 0 of the root's Out to one rank after another.
func sendOneByOne(b *sched.Builder, p, root, rank int) {
	if rank != root {
		b.Recv(root, sched.Out, whole(1), sched.Replace)
		return
	}
	for r := range p {
		if r != root {
			b.Send(sched.Out, whole(1), r)
			b.EndStep()
		}
	}
}
