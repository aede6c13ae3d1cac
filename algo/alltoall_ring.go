package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Each rank sends its neighbor the blocks for all others, the nearest one's
// first. The neighbor takes out its own and sends on the rest, and so on: after
// p−1 steps all blocks have gone where they are meant to. It is a mesh of one
// dimension.
//
// Cost: (p − 1)(α + n/2 β), and two copies of the vector.
//
// All messages are between neighbors and none shares a link, but a block is
// sent p/2 times on average. Prefer it on a ring only; elsewhere pairwise moves
// far less.
//
// Grama et al., 4.5.1.
var alltoallRing = Algorithm{
	Collective:   sched.AllToAll,
	Name:         "ring",
	Restrictions: Restrictions{EqualParts: true},
	Formula:      "(p − 1)(α + n/2 β)",
	Prefer:       "a ring, and no more",
	cost:         func(c call, n float64) model.Cost { return moves(c.p-1, n/2) },
	build:        func(c call) generator { return alltoallMeshPlan(c.p, mesh{c.p}) },
}
