package algo

import (
	"slices"

	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// In each step, neighbors along one dimension of the hypercube exchange all
// blocks that are on the wrong side of it: half of what they hold. After all
// dimensions every block has come. It is a mesh with two ranks in each
// dimension, and the blocks are stored and forwarded.
//
// Cost: lg p (α + n/2 β), and a copy of the vector before and after each step.
//
// All messages are between neighbors. Prefer it for short blocks on a
// hypercube; bruck costs the same for any p, where distance does not matter.
//
// Grama et al., 4.5.3.
var alltoallHypercube = Algorithm{
	Collective:   sched.AllToAll,
	Name:         "hypercube",
	Restrictions: Restrictions{PowerOfTwo: true, EqualParts: true},
	Formula:      "lg p (α + n/2 β)",
	Prefer:       "short blocks on a hypercube",
	cost:         func(c call, n float64) model.Cost { return moves(floorLog(c.p), n/2) },
	build: func(c call) generator {
		return alltoallMeshPlan(c.p, slices.Repeat(mesh{2}, floorLog(c.p)))
	},
}
