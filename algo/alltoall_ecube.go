package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// In step j each rank exchanges blocks with the one whose number differs from
// its own by the bits of j: rank XOR j. On a hypercube whose routes correct one
// bit after another, lowest first (E-cube), no two messages of a step share a
// link, although they go up to lg p hops.
//
// Cost: (p − 1)(α + n/p β).
//
// Prefer it to pairwise if p is a power of two: ranks exchange in pairs, and on
// hypercubes and trees the traffic is spread evenly.
//
// Grama et al., 4.5.3.
var alltoallEcube = Algorithm{
	Collective:   sched.AllToAll,
	Name:         "ecube",
	Restrictions: Restrictions{PowerOfTwo: true},
	Formula:      "(p − 1)(α + n/p β)",
	Prefer:       "all but short blocks on a hypercube or tree",
	cost:         func(c call, n float64) model.Cost { return moves(c.p-1, n/float64(c.p)) },
	build: func(c call) generator {
		return generator{blocks: c.p, program: func(b *sched.Builder, rank int) {
			b.Copy(sched.In, one(rank), sched.Out, rank, sched.Replace)
			for j := 1; j < c.p; j++ {
				personal(b, rank^j, rank^j)
				b.EndStep()
			}
		}}
	},
}
