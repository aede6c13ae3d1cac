package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The allgather on a circulant graph reversed. A rank has to hand on the blocks
// of all ranks, beginning with its own and going round the circle. In each round
// it gives the second half of what is left to the rank for which that is the
// first half, until its own block is left.
//
// Cost: ⌈lg p⌉ α + n (p−1)/p (β + γ), for any p. No algorithm costs less.
//
// It is the reduce-scatter to prefer for operators that commute. They must
// commute, because a rank first combines with one half a circle away.
//
// Träff, Optimal, Non-pipelined Reduce-scatter and Allreduce Algorithms, 2024,
// arXiv 2410.14234.
var reduceScatterCirculant = Algorithm{
	Collective:   sched.ReduceScatter,
	Name:         "circulant",
	Restrictions: Restrictions{Commutative: true},
	Formula:      "⌈lg p⌉ α + n (p−1)/p (β + γ)",
	Prefer:       "all blocks, p no power of two",
	cost: func(c call, n float64) model.Cost {
		cost := circulantCost(c.p, n)
		cost.Combines = cost.Words
		return cost
	},
	build: func(c call) generator {
		g := newCirculant(c.p)
		return generator{blocks: c.p, scratch: 2 * c.p, program: func(b *sched.Builder, rank int) {
			if c.p == 1 {
				b.Copy(sched.In, one(0), sched.Out, 0, sched.Replace)
				return
			}
			openWindow(b, c.p, rank)
			g.scatter(b, rank, sched.Out)
		}}
	},
}

// scatter combines, in the windows of the ranks, all contributions to the first
// block of each. The sum lands in into.
func (g circulant) scatter(b *sched.Builder, rank int, into sched.Buffer) {
	for k := g.rounds() - 1; k >= 0; k-- {
		skip, less := g.skips[k], g.skips[k+1]-g.skips[k]
		b.Send(sched.Scratch, window(rank+skip, less), (rank+skip)%g.p)
		sum := sched.Scratch
		if k == 0 {
			sum = into
		}
		recvCombine(b, sched.Scratch, sum, window(rank, less), (rank-skip+g.p)%g.p, sched.Right)
		b.EndStep()
	}
}
