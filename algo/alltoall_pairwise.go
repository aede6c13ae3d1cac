package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// In step i each rank sends to the one i positions further in the circle, and takes
// from the one i positions before it. In every step each rank is the receiver of
// one message, and the sender of one.
//
// Cost: (p − 1)(α + n/p β).
//
// The term in n is the least there is: nothing is passed on. Prefer it for all
// but short blocks.
//
// Thakur, Rabenseifner, Gropp 2005.
var alltoallPairwise = Algorithm{
	Collective: sched.AllToAll,
	Name:       "pairwise",
	Formula:    "(p − 1)(α + n/p β)",
	Prefer:     "all but short blocks",
	cost:       func(c call, n float64) model.Cost { return moves(c.p-1, n/float64(c.p)) },
	build: func(c call) generator {
		return generator{blocks: c.p, program: func(b *sched.Builder, rank int) {
			b.Copy(sched.In, one(rank), sched.Out, rank, sched.Replace)
			for i := 1; i < c.p; i++ {
				personal(b, (rank+i)%c.p, (rank-i+c.p)%c.p)
				b.EndStep()
			}
		}}
	},
}
