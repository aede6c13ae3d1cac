package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The ranks stand in a mesh. In the root's line along the first dimension, each
// rank gets the parts of its row; then in all rows at once, each rank gets its
// part. More dimensions follow in the same way. Each line does as binomial
// does.
//
// Cost: Σ ⌈lg d⌉ α + n (p−1)/p β over the sizes d: that of binomial, if all are
// powers of two.
//
// Prefer it when the network is such a mesh and p is no power of two: messages
// then keep to their lines, and none shares a link.
//
// Grama et al., 4.4.
var scatterMesh = Algorithm{
	Collective: sched.Scatter,
	Name:       "mesh",
	Params:     []Param{dimsParam},
	Formula:    "Σ ⌈lg d⌉ α + n (p−1)/p β, d the sizes of the mesh",
	Prefer:     "all but long parts on a mesh or torus",
	cost: func(c call, n float64) model.Cost {
		return model.Cost{Startups: float64(meshSteps(c.sizes("dims"))), Words: share(n, c.p)}
	},
	build: func(c call) generator {
		m := mesh(c.sizes("dims"))
		return generator{blocks: c.p, scratch: spare(c.p, c.p), program: func(b *sched.Builder, rank int) {
			held := location{sched.Scratch, 0}
			if rank == c.root {
				held.buffer = sched.In
				b.Copy(sched.In, one(rank), sched.Out, rank, sched.Replace)
			}
			for d := range m {
				if l, root, me := m.line(d, c.root, rank); l.n > 0 {
					scatter(b, l, root, me, held)
				}
			}
		}}
	},
}
