package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The binomial scatter reversed: a rank appends what its partner has gathered
// to its own, and hands on the whole, until all parts are at the root.
//
// Cost: ⌈lg p⌉ α + n (p−1)/p β.
//
// Both terms are the least there is. Prefer it unless parts are so long that
// handling those of others costs more than start-up.
//
// Grama et al., 4.4.
var gatherBinomial = Algorithm{
	Collective: sched.Gather,
	Name:       "binomial",
	Formula:    "⌈lg p⌉ α + n (p−1)/p β",
	Prefer:     "all but long parts",
	cost:       func(c call, n float64) model.Cost { return scatterBinomial.cost(c, n) },
	build: func(c call) plan {
		return plan{blocks: c.p, scratch: spare(c.p, c.p), program: func(b *sched.Builder, rank int) {
			held := gather(b, interval{0, c.p, c.root}, rank, keptBy(rank, c.root))
			if rank == c.root {
				b.Copy(held, one(rank), sched.Out, rank, sched.Replace)
			}
		}}
	},
}

// gather collects the blocks of an interval of ranks at its holder, in kept. It
// returns where rank has its own block: in In, or after it has received
// something, in kept.
func gather(b *sched.Builder, v interval, rank int, kept sched.Buffer) sched.Buffer {
	if v.size() == 1 {
		return sched.In
	}
	own, other := v.handOver()
	held := gather(b, either(own, other, rank), rank, kept)
	switch rank {
	case other.holder:
		b.Send(held, other.parts(), own.holder)
		b.EndStep()
	case own.holder:
		b.Copy(held, one(rank), kept, rank, sched.Replace)
		b.Recv(other.holder, kept, other.parts(), sched.Replace)
		b.EndStep()
		held = kept
	}
	return held
}
