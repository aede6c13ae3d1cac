package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The broadcast on a circulant graph reversed, in direction and in order: the
// path of each block from the root to all ranks is a tree, and reversed it
// gathers their contributions.
//
// Cost: (k − 1 + ⌈lg p⌉)(α + n/k β + n/k γ), for any p. No algorithm takes
// fewer rounds. The best k is √((⌈lg p⌉ − 1) n(β+γ)/α).
//
// Prefer it for long vectors. The operator must commute, because the ranks of a
// tree are not neighbors; chain and in-order-binary are for others.
//
// Träff, Optimal Broadcast Schedules in Logarithmic Time with Applications to
// Broadcast, All-Broadcast, Reduction and All-Reduction, 2024, arXiv 2407.18004.
var reduceCirculant = Algorithm{
	Collective:   sched.Reduce,
	Name:         "circulant",
	Params:       []Param{blocksParam},
	Restrictions: Restrictions{Commutative: true},
	Formula:      "(k − 1 + ⌈lg p⌉)(α + n/k β + n/k γ), k blocks",
	Prefer:       "long vectors",
	cost: func(c call, n float64) model.Cost {
		k := c.number("blocks")
		return sums(circulantRounds(c.p, k), n/float64(k))
	},
	build: func(c call) generator {
		k, g := c.number("blocks"), newCirculant(c.p)
		return generator{blocks: k, scratch: spare(c.p, k), program: func(b *sched.Builder, rank int) {
			if c.p == 1 {
				b.Copy(sched.In, whole(k), sched.Out, 0, sched.Replace)
				return
			}
			at := func(position int) int { return (position + c.root) % c.p }
			rounds, kept := g.relays((rank-c.root+c.p)%c.p, k), keptBy(rank, c.root)
			held := make([]sched.Buffer, k) // In, until something was combined
			for i := len(rounds) - 1; i >= 0; i-- {
				r := rounds[i]
				if r.take >= 0 {
					b.Send(held[r.take], one(r.take), at(r.from))
				}
				if r.give >= 0 {
					recvCombine(b, held[r.give], kept, one(r.give), at(r.to), sched.Right)
					held[r.give] = kept
				}
				b.EndStep()
			}
		}}
	},
}
