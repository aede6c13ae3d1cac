package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The ranks stand in a mesh. All lines along the last dimension send their
// blocks round, as ring does; then all lines along the dimension before send
// round the blocks that their ranks have gathered so far; and so on.
//
// Cost: Σ (d − 1) α + n (p−1)/p β over the sizes d. On a √p×√p mesh with
// wraparound that is 2(√p − 1) α.
//
// All messages are between neighbors and none shares a link. Prefer it to ring
// where the network has more than one dimension: it moves no more, and starts
// far fewer messages.
//
// Grama et al., 4.2.2.
var allgatherMesh = Algorithm{
	Collective: sched.AllGather,
	Name:       "mesh",
	Params:     []Param{dimsParam},
	Formula:    "Σ (d − 1) α + n (p−1)/p β, d the sizes of the mesh",
	Prefer:     "long blocks on a torus",
	cost: func(c call, n float64) model.Cost {
		return model.Cost{Startups: float64(meshRounds(c.sizes("dims"))), Words: share(n, c.p)}
	},
	build: func(c call) generator {
		m := mesh(c.sizes("dims"))
		return generator{blocks: c.p, program: func(b *sched.Builder, rank int) {
			b.Copy(sched.In, one(rank), sched.Out, rank, sched.Replace)
			for d := len(m) - 1; d >= 0; d-- {
				l, me := m.through(d, rank)
				gatherRound(b, l, me, sched.Out, 0)
			}
		}}
	},
}

// through returns the line along dimension d that a rank stands on, and its
// position there.
func (m mesh) through(d, rank int) (l line, position int) {
	l, _, position = m.line(d, rank, rank)
	return l, position
}

// meshRounds returns how many steps it takes to send something round all lines
// of a mesh, one dimension after another.
func meshRounds(sizes []int) (steps int) {
	for _, d := range sizes {
		steps += d - 1
	}
	return steps
}
