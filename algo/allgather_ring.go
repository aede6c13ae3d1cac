package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The blocks go round: in every step each rank sends to the next the block that
// came last, beginning with its own.
//
// Cost: (p − 1) α + n (p−1)/p β.
//
// All messages are between neighbours and none shares a link, on a ring and on
// all that has one. Prefer it for long blocks, and where distance or sharing
// costs; recursive-doubling starts fewer messages.
//
// Grama et al., 4.2.
var allgatherRing = Algorithm{
	Collective: sched.AllGather,
	Name:       "ring",
	Formula:    "(p − 1) α + n (p−1)/p β",
	Prefer:     "long blocks",
	cost:       func(c call, n float64) model.Cost { return moves(c.p-1, n/float64(c.p)) },
	build: func(c call) plan {
		return plan{blocks: c.p, program: func(b *sched.Builder, rank int) {
			b.Copy(sched.In, one(rank), sched.Out, rank, sched.Replace)
			gatherRound(b, c.p, rank, 0)
		}}
	},
}

// gatherRound sends the p blocks from first on round the ring of p ranks until
// every Out has all. A rank's own is in its Out to begin with.
func gatherRound(b *sched.Builder, p, rank, first int) {
	next, previous := (rank+1)%p, (rank-1+p)%p
	for step := range p - 1 {
		b.Send(sched.Out, one(first+(rank-step+p)%p), next)
		b.Recv(previous, sched.Out, one(first+(rank-step-1+p)%p), sched.Replace)
		b.EndStep()
	}
}
