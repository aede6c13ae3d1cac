package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Each block goes round the ring of ranks and gathers their contributions: it
// sets out from the rank after its owner, and comes home complete.
//
// Cost: (p − 1) α + n (p−1)/p (β + γ).
//
// All messages are between neighbours and none shares a link. Prefer it for
// long blocks, if p is no power of two or distance costs. The operator must
// commute, because only one block sets out from rank 0.
//
// Grama et al., 4.2.
var reduceScatterRing = Algorithm{
	Collective:   sched.ReduceScatter,
	Name:         "ring",
	Restrictions: Restrictions{Commutative: true},
	Formula:      "(p − 1) α + n (p−1)/p (β + γ)",
	Prefer:       "long blocks",
	cost:         func(c call, n float64) model.Cost { return sums(c.p-1, n/float64(c.p)) },
	build: func(c call) plan {
		return plan{blocks: c.p, scratch: spare(c.p, c.p), program: func(b *sched.Builder, rank int) {
			scatterRound(b, c.p, rank, 0)
		}}
	},
}

// scatterRound combines the p blocks from first on, each in the Out of the rank
// that it belongs to.
func scatterRound(b *sched.Builder, p, rank, first int) {
	next, previous := (rank+1)%p, (rank-1+p)%p
	held := sched.In
	for step := 1; step < p; step++ {
		into := sched.Scratch
		if step == p-1 {
			into = sched.Out
		}
		b.Send(held, one(first+(rank-step+p)%p), next)
		recvCombine(b, sched.In, into, one(first+(rank-step-1+p)%p), previous, sched.Left)
		b.EndStep()
		held = into
	}
	if p == 1 {
		b.Copy(sched.In, one(first), sched.Out, first, sched.Replace)
	}
}
