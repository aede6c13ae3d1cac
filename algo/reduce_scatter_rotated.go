package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The rotated allgather reversed: each block is cut in lg p pieces, the pieces
// are combined by recursive halving, and the pieces j take the dimensions of the
// hypercube in an order of their own, so that every link carries one message in
// each direction.
//
// Cost, all ports: lg p α + n (p−1)/p / lg p β + n (p−1)/p γ, and a copy of the
// vector. A rank combines what comes through its ports one after another, so
// the γ is that of one port.
//
// Prefer it for long blocks on a hypercube whose nodes use all their links at
// once. The operator must commute, because most pieces do not meet the nearest
// rank last.
//
// Johnsson, Ho 1989.
var reduceScatterRotated = Algorithm{
	Collective:   sched.ReduceScatter,
	Name:         "rotated",
	Restrictions: Restrictions{PowerOfTwo: true, Commutative: true, EqualParts: true, EqualBlocks: true, AllPort: true},
	Formula:      "all ports: lg p α + n (p−1)/p / lg p β + n (p−1)/p γ",
	Prefer:       "a hypercube that uses all its links at once",
	cost: func(c call, n float64) model.Cost {
		cost := scatterRotated.cost(c, n)
		cost.Combines = share(n, c.p)
		return cost
	},
	build: func(c call) generator {
		q := cubeOf(c.p)
		return q.generator(q.p*q.d, func(b *sched.Builder, rank int) {
			q.eachPiece(1, func(at, piece, rank int) {
				b.Copy(sched.In, one(q.block(rank, piece)), sched.Scratch, at, sched.Replace)
			})
			for bit := q.d - 1; bit >= 0; bit-- {
				for piece := range q.d {
					r := rotation{q.d, piece + 1}
					peer, mine := rank^r.link(bit), r.label(rank)&^(1<<bit-1)
					b.Send(sched.Scratch, q.run(piece, mine^1<<bit, 1<<bit), peer)
					b.Recv(peer, sched.Scratch, q.run(piece, mine, 1<<bit), beside(rank, peer))
				}
				b.EndStep()
			}
			for piece := range q.d {
				label := rotation{q.d, piece + 1}.label(rank)
				b.Copy(sched.Scratch, q.run(piece, label, 1), sched.Out, q.block(rank, piece), sched.Replace)
			}
		})
	},
}
