package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Each rank exchanges blocks with rank 0, then with rank 1, and so on, as a
// loop over the ranks does. Ranks wait for partners that are still busy: ranks
// r and s exchange in step r + s.
//
// Cost, p ≥ 2: (2p − 3)(α + n/p β).
//
// It is the simplest program. Prefer pairwise, which does the same in half the
// steps by beginning with the next rank instead of the first.
//
// Grama et al., 4.5, asks for an order that does not congest.
var alltoallLinear = Algorithm{
	Collective: sched.AllToAll,
	Name:       "linear",
	Formula:    "(2p − 3)(α + n/p β)",
	Prefer:     "two ranks; a yardstick for the others",
	cost:       func(c call, n float64) model.Cost { return moves(max(0, 2*c.p-3), n/float64(c.p)) },
	build: func(c call) generator {
		return generator{blocks: c.p, program: func(b *sched.Builder, rank int) {
			b.Copy(sched.In, one(rank), sched.Out, rank, sched.Replace)
			for peer := range c.p {
				if peer != rank {
					personal(b, peer, peer)
					b.EndStep()
				}
			}
		}}
	},
}

// personal sends a rank its block, and takes the rank's own from another.
func personal(b *sched.Builder, to, from int) {
	b.Send(sched.In, one(to), to)
	b.Recv(from, sched.Out, one(from), sched.Replace)
}
