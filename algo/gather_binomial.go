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
	build: func(c call) generator {
		return generator{blocks: c.p, scratch: spare(c.p, c.p), program: func(b *sched.Builder, rank int) {
			held := gather(b, everyone(c.p), interval{0, c.p, c.root}, rank, sched.In, keptBy(rank, c.root))
			if rank == c.root {
				b.Copy(held, one(rank), sched.Out, rank, sched.Replace)
			}
		}}
	},
}

// gather collects the parts that the positions of an interval stand for at its
// holder, in kept. Position me finds its own in held, which is In if it has that
// alone, or else kept. Gather returns where its parts are at the end: in kept, if it
// has received any.
func gather(b *sched.Builder, l partRow, v interval, me int, held, kept sched.Buffer) sched.Buffer {
	if v.size() == 1 {
		return held
	}
	own, other := v.handOver()
	held = gather(b, l, either(own, other, me), me, held, kept)
	parts := l.parts(other.lo, other.hi)
	switch me {
	case other.holder:
		if held == sched.In {
			parts = one(l.home(me))
		}
		b.Send(held, parts, l.rank(own.holder))
		b.EndStep()
	case own.holder:
		if held == sched.In {
			b.Copy(held, one(l.home(me)), kept, l.own(me), sched.Replace)
		}
		b.Recv(l.rank(other.holder), kept, parts, sched.Replace)
		b.EndStep()
		held = kept
	}
	return held
}
