package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Each block is cut in lg p pieces, one for each dimension of the hypercube, and
// the pieces are gathered by recursive doubling. But the pieces j begin with
// dimension j, then take the dimension above, and so on round to j − 1. So in
// each step they go along different dimensions, and every link carries one
// message in each direction.
//
// Cost, all ports: lg p α + n (p−1)/p / lg p β, and a copy of the vector. The β
// is a lg p-th of what one port takes.
//
// Prefer it for long blocks on a hypercube whose nodes use all their links at
// once.
//
// Johnsson, Ho 1989; Grama et al., 4.7.2.
var allgatherRotated = Algorithm{
	Collective:   sched.AllGather,
	Name:         "rotated",
	Restrictions: Restrictions{PowerOfTwo: true, EqualParts: true, EqualBlocks: true, AllPort: true},
	Formula:      "all ports: lg p α + n (p−1)/p / lg p β",
	Prefer:       "a hypercube that uses all its links at once",
	cost:         func(c call, n float64) model.Cost { return scatterRotated.cost(c, n) },
	build: func(c call) generator {
		q := cubeOf(c.p)
		return q.generator(q.p*q.d, func(b *sched.Builder, rank int) {
			for piece := range q.d {
				label := rotation{q.d, piece}.label(rank)
				b.Copy(sched.In, one(q.block(rank, piece)), sched.Scratch, q.run(piece, label, 1).Lo, sched.Replace)
			}
			for bit := range q.d {
				for piece := range q.d {
					r := rotation{q.d, piece}
					peer, mine := rank^r.link(bit), r.label(rank)&^(1<<bit-1)
					b.Send(sched.Scratch, q.run(piece, mine, 1<<bit), peer)
					b.Recv(peer, sched.Scratch, q.run(piece, mine^1<<bit, 1<<bit), sched.Replace)
				}
				b.EndStep()
			}
			q.eachPiece(0, func(at, piece, rank int) {
				b.Copy(sched.Scratch, one(at), sched.Out, q.block(rank, piece), sched.Replace)
			})
		})
	},
}
