package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The messages of the binomial broadcast, with other sizes: a rank hands on
// only what belongs to the other half of its interval. Nothing is duplicated.
//
// Cost: ⌈lg p⌉ α + n (p−1)/p β.
//
// Both terms are the least there is, on a line and a mesh too. Prefer it unless
// parts are so long that handling those of others costs more than start-up.
//
// Grama et al., 4.4.
var scatterBinomial = Algorithm{
	Collective: sched.Scatter,
	Name:       "binomial",
	Formula:    "⌈lg p⌉ α + n (p−1)/p β",
	Prefer:     "all but long parts",
	cost: func(c call, n float64) model.Cost {
		return model.Cost{Startups: float64(ceilLog(c.p)), Words: share(n, c.p)}
	},
	build: func(c call) plan {
		return plan{blocks: c.p, scratch: spare(c.p, c.p), program: func(b *sched.Builder, rank int) {
			held := sched.Scratch
			if rank == c.root {
				held = sched.In
			}
			scatter(b, c.p, c.root, rank, held)
		}}
	},
}

// scatter brings every rank its block, into Out. The root finds all of them in
// held; others keep there what they are to hand on.
func scatter(b *sched.Builder, p, root, rank int, held sched.Buffer) {
	if rank == root {
		b.Copy(held, one(rank), sched.Out, rank, sched.Replace)
	}
	for v := (interval{0, p, root}); v.size() > 1; {
		own, other := v.handOver()
		switch rank {
		case own.holder:
			b.Send(held, other.parts(), other.holder)
			b.EndStep()
		case other.holder:
			if other.size() == 1 {
				held = sched.Out
			}
			b.Recv(own.holder, held, other.parts(), sched.Replace)
			b.EndStep()
			b.Copy(held, one(rank), sched.Out, rank, sched.Replace)
		}
		v = either(own, other, rank)
	}
}
