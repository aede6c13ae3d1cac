package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Each part is cut in lg p pieces, one for each dimension of the hypercube, and
// the pieces are scattered as binomial does. But the pieces j begin with
// dimension j, then take the dimension below, and so on round to j + 1. So in
// each step they go along different dimensions, and no link carries two
// messages.
//
// Cost, all ports: lg p α + n (p−1)/p / lg p β, and a copy of the vector at the
// root. The β is a lg p-th of what one port takes.
//
// Prefer it for long parts on a hypercube whose nodes use all their links at
// once.
//
// Johnsson, Ho 1989; Grama et al., 4.7.2.
var scatterRotated = Algorithm{
	Collective:   sched.Scatter,
	Name:         "rotated",
	Restrictions: Restrictions{PowerOfTwo: true, EqualParts: true, EqualBlocks: true, AllPort: true},
	Formula:      "all ports: lg p α + n (p−1)/p / lg p β",
	Prefer:       "a hypercube that uses all its links at once",
	cost: func(c call, n float64) model.Cost {
		d := floorLog(c.p)
		return model.Cost{Startups: float64(d), Words: share(n, c.p) / float64(max(1, d))}
	},
	build: func(c call) generator {
		q := cubeOf(c.p)
		return q.generator(q.p*q.d, func(b *sched.Builder, rank int) {
			if rank == c.root {
				q.eachPiece(1, func(at, piece, rank int) {
					b.Copy(sched.In, one(q.block(rank^c.root, piece)), sched.Scratch, at, sched.Replace)
				})
			}
			for bit := q.d - 1; bit >= 0; bit-- {
				for piece := range q.d {
					r := rotation{q.d, piece + 1}
					peer, label := rank^r.link(bit), r.label(rank^c.root)
					switch {
					case label&(1<<bit-1) > 0: // its turn is later
					case label>>bit&1 == 0:
						b.Send(sched.Scratch, q.run(piece, label+1<<bit, 1<<bit), peer)
					default:
						b.Recv(peer, sched.Scratch, q.run(piece, label, 1<<bit), sched.Replace)
					}
				}
				b.EndStep()
			}
			for piece := range q.d {
				label := rotation{q.d, piece + 1}.label(rank ^ c.root)
				b.Copy(sched.Scratch, q.run(piece, label, 1), sched.Out, q.block(rank, piece), sched.Replace)
			}
		})
	},
}
