package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The binomial broadcast reversed, in direction and in order: neighbors
// combine first, then pairs, then fours, until the root has all. What a rank
// holds is always the combination of an interval of ranks, so they stay in
// order for any p and any root.
//
// Cost: ⌈lg p⌉ (α + nβ + nγ).
//
// Prefer it for short vectors. For long ones reduce-scatter-gather sends and
// combines less.
//
// Grama et al., 4.1.
var reduceBinomial = Algorithm{
	Collective: sched.Reduce,
	Name:       "binomial",
	Formula:    "⌈lg p⌉ (α + nβ + nγ)",
	Prefer:     "short vectors, any operator",
	cost:       func(c call, n float64) model.Cost { return sums(ceilLog(c.p), n) },
	build: func(c call) generator {
		return generator{blocks: 1, scratch: spare(c.p, 1), program: func(b *sched.Builder, rank int) {
			held := reduce(b, everyone(c.p), interval{0, c.p, c.root}, rank, sched.In, keptBy(rank, c.root), whole(1))
			if rank == c.root {
				b.Copy(held, whole(1), sched.Out, 0, sched.Replace)
			}
		}}
	},
}

// reduce combines blocks of all positions of an interval at its holder. Position me
// finds its own in held, collects in kept, and reduce returns where the
// combination is if me is the holder.
func reduce(b *sched.Builder, l sequence, v interval, me int, held, kept sched.Buffer, blocks sched.Range) sched.Buffer {
	if v.size() == 1 {
		return held
	}
	own, other := v.halves()
	held = reduce(b, l, either(own, other, me), me, held, kept, blocks)
	switch me {
	case other.holder:
		b.Send(held, blocks, l.rank(own.holder))
		b.EndStep()
	case own.holder:
		recvCombine(b, held, kept, blocks, l.rank(other.holder), beside(own.lo, other.lo))
		b.EndStep()
		held = kept
	}
	return held
}
