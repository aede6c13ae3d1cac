package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The broadcast on a mesh reversed: all lines along the last dimension reduce
// at once, each to the rank that stands as the root does in it, then the lines
// of these along the dimension before, and so on. Ranks are numbered row by
// row, so what is combined is always a run of ranks, and they stay in order.
//
// Cost: Σ ⌈lg d⌉ (α + nβ + nγ) over the sizes d.
//
// Prefer it when the network is such a mesh and p is no power of two.
//
// Grama et al., 4.1.2.
var reduceMesh = Algorithm{
	Collective: sched.Reduce,
	Name:       "mesh",
	Params:     []Param{dimsParam},
	Formula:    "Σ ⌈lg d⌉ (α + nβ + nγ), d the sizes of the mesh",
	Prefer:     "short vectors on a mesh or torus",
	cost:       func(c call, n float64) model.Cost { return sums(meshSteps(c.sizes("dims")), n) },
	build: func(c call) generator {
		m := mesh(c.sizes("dims"))
		return generator{blocks: 1, scratch: spare(c.p, 1), program: func(b *sched.Builder, rank int) {
			held := sched.In
			for d := len(m) - 1; d >= 0; d-- {
				if l, root, me := m.line(d, c.root, rank); l.n > 0 {
					held = reduce(b, l, interval{0, l.n, root}, me, held, keptBy(rank, c.root), whole(1))
				}
			}
			if rank == c.root {
				b.Copy(held, whole(1), sched.Out, 0, sched.Replace)
			}
		}}
	},
}
