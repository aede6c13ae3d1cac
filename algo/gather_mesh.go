package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The scatter on a mesh reversed: all lines along the last dimension gather at
// once, each at the rank that stands as the root does in it, then the lines of
// these along the dimension before, and so on.
//
// Cost: Σ ⌈lg d⌉ α + n (p−1)/p β over the sizes d.
//
// Prefer it when the network is such a mesh and p is no power of two.
//
// Grama et al., 4.4.
var gatherMesh = Algorithm{
	Collective: sched.Gather,
	Name:       "mesh",
	Params:     []Param{dimsParam},
	Formula:    "Σ ⌈lg d⌉ α + n (p−1)/p β, d the sizes of the mesh",
	Prefer:     "all but long parts on a mesh or torus",
	cost:       func(c call, n float64) model.Cost { return scatterMesh.cost(c, n) },
	build: func(c call) generator {
		m := mesh(c.sizes("dims"))
		return generator{blocks: c.p, scratch: spare(c.p, c.p), program: func(b *sched.Builder, rank int) {
			held := sched.In
			for d := len(m) - 1; d >= 0; d-- {
				if l, root, me := m.line(d, c.root, rank); l.n > 0 {
					held = gather(b, l, interval{0, l.n, root}, me, held, keptBy(rank, c.root))
				}
			}
			if rank == c.root {
				b.Copy(held, one(rank), sched.Out, rank, sched.Replace)
			}
		}}
	},
}
