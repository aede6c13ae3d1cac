package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The allgather on a mesh reversed: all lines along the first dimension combine
// the blocks of each row, as ring does, then all rows combine the blocks of
// each of their ranks; and so on.
//
// Cost: Σ (d − 1) α + n (p−1)/p (β + γ) over the sizes d.
//
// All messages are between neighbors and none shares a link. Prefer it to ring
// where the network has more than one dimension. The operator must commute.
//
// Grama et al., 4.2.2.
var reduceScatterMesh = Algorithm{
	Collective:   sched.ReduceScatter,
	Name:         "mesh",
	Params:       []Param{dimsParam},
	Restrictions: Restrictions{Commutative: true},
	Formula:      "Σ (d − 1) α + n (p−1)/p (β + γ), d the sizes of the mesh",
	Prefer:       "long blocks on a torus",
	cost: func(c call, n float64) model.Cost {
		cost := allgatherMesh.cost(c, n)
		cost.Combines = cost.Words
		return cost
	},
	build: func(c call) generator {
		m := mesh(c.sizes("dims"))
		return generator{blocks: c.p, scratch: spare(c.p, c.p), program: func(b *sched.Builder, rank int) {
			held := sched.In
			for d := range m {
				l, me := m.through(d, rank)
				held = scatterRound(b, l, me, 0, held)
			}
			b.Copy(held, one(rank), sched.Out, rank, sched.Replace)
		}}
	},
}
