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
	build: func(c call) generator {
		return generator{blocks: c.p, scratch: spare(c.p, c.p), program: func(b *sched.Builder, rank int) {
			held := location{sched.Scratch, 0}
			if rank == c.root {
				held.buffer = sched.In
				b.Copy(sched.In, one(rank), sched.Out, rank, sched.Replace)
			}
			scatter(b, everyone(c.p), c.root, rank, held)
		}}
	},
}

// scatter sends every position of a row the parts that it stands for. The root has
// all of them at held; other positions receive theirs there, or in Out if it is their
// own part and no more, and copy their own part to Out. Root and me are positions.
func scatter(b *sched.Builder, l partRow, root, me int, held location) {
	for v := (interval{0, l.size(), root}); v.size() > 1; {
		own, other := v.handOver()
		parts := l.parts(other.lo, other.hi)
		switch me {
		case own.holder:
			b.Send(held.buffer, held.blocks(parts), l.rank(other.holder))
			b.EndStep()
		case other.holder:
			if parts.Len() == 1 {
				held = location{sched.Out, l.home(me) - l.own(me)}
			}
			b.Recv(l.rank(own.holder), held.buffer, held.blocks(parts), sched.Replace)
			b.EndStep()
			b.Copy(held.buffer, held.blocks(one(l.own(me))), sched.Out, l.home(me), sched.Replace)
		}
		v = either(own, other, me)
	}
}
