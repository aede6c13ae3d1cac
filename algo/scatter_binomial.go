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
			held := sched.Scratch
			if rank == c.root {
				held = sched.In
				b.Copy(held, one(rank), sched.Out, rank, sched.Replace)
			}
			scatter(b, line{0, 1, c.p}, c.root, rank, held)
		}}
	},
}

// scatter sends every position of a line the parts that it stands for. The root
// has all of them in held; other positions receive theirs there, or in Out if
// it is their own part and no more, and copy their own part to Out. Root and me
// are positions.
func scatter(b *sched.Builder, l line, root, me int, held sched.Buffer) {
	rank := l.rank(me)
	for v := (interval{0, l.n, root}); v.size() > 1; {
		own, other := v.handOver()
		parts := l.parts(other.lo, other.hi)
		switch me {
		case own.holder:
			b.Send(held, parts, l.rank(other.holder))
			b.EndStep()
		case other.holder:
			if parts.Len() == 1 {
				held = sched.Out
			}
			b.Recv(l.rank(own.holder), held, parts, sched.Replace)
			b.EndStep()
			b.Copy(held, one(rank), sched.Out, rank, sched.Replace)
		}
		v = either(own, other, me)
	}
}
