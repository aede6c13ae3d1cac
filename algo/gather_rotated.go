package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The rotated scatter reversed: each part is cut in lg p pieces, the pieces are
// gathered as binomial does, and the pieces j take the dimensions of the
// hypercube in an order of their own, so that no link carries two messages in
// one step.
//
// Cost, all ports: lg p α + n (p−1)/p / lg p β, and a copy of the vector at the
// root.
//
// Prefer it for long parts on a hypercube whose nodes use all their links at
// once.
//
// Johnsson, Ho 1989; Grama et al., 4.7.2.
var gatherRotated = Algorithm{
	Collective:   sched.Gather,
	Name:         "rotated",
	Restrictions: Restrictions{PowerOfTwo: true, EqualParts: true, EqualBlocks: true, AllPort: true},
	Formula:      "all ports: lg p α + n (p−1)/p / lg p β",
	Prefer:       "a hypercube that uses all its links at once",
	cost:         func(c call, n float64) model.Cost { return scatterRotated.cost(c, n) },
	build: func(c call) generator {
		q := cubeOf(c.p)
		return q.generator(q.p*q.d, func(b *sched.Builder, rank int) {
			for piece := range q.d {
				label := rotation{q.d, piece + 1}.label(rank ^ c.root)
				b.Copy(sched.In, one(q.block(rank, piece)), sched.Scratch, q.run(piece, label, 1).Lo, sched.Replace)
			}
			for bit := range q.d {
				for piece := range q.d {
					r := rotation{q.d, piece + 1}
					peer, label := rank^r.link(bit), r.label(rank^c.root)
					switch {
					case label&(1<<bit-1) > 0: // its turn is over
					case label>>bit&1 == 0:
						b.Recv(peer, sched.Scratch, q.run(piece, label+1<<bit, 1<<bit), sched.Replace)
					default:
						b.Send(sched.Scratch, q.run(piece, label, 1<<bit), peer)
					}
				}
				b.EndStep()
			}
			if rank == c.root {
				q.eachPiece(1, func(at, piece, rank int) {
					b.Copy(sched.Scratch, one(at), sched.Out, q.block(rank^c.root, piece), sched.Replace)
				})
			}
		})
	},
}
