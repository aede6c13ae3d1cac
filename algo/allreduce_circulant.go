package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// A reduce-scatter on a circulant graph, and then an allgather on the same,
// which goes the same ways back.
//
// Cost: 2⌈lg p⌉ α + 2n (p−1)/p β + n (p−1)/p γ, for any p.
//
// The terms in n are the least there is. Prefer it for long vectors if p is no
// power of two, where recursive-halving folds and the ring takes 2(p − 1) steps.
// The operator must commute.
//
// Träff, Optimal, Non-pipelined Reduce-scatter and Allreduce Algorithms, 2024,
// arXiv 2410.14234.
var allreduceCirculant = Algorithm{
	Collective:   sched.AllReduce,
	Name:         "circulant",
	Restrictions: Restrictions{Commutative: true},
	Formula:      "2⌈lg p⌉ α + 2n (p−1)/p β + n (p−1)/p γ",
	Prefer:       "long vectors, p no power of two",
	cost: func(c call, n float64) model.Cost {
		return reduceScatterCirculant.cost(c, n).Plus(allgatherCirculant.cost(c, n))
	},
	build: func(c call) generator {
		g := newCirculant(c.p)
		return generator{blocks: c.p, scratch: 2 * c.p, program: func(b *sched.Builder, rank int) {
			openWindow(b, c.p, rank)
			g.scatter(b, rank, sched.Scratch)
			g.gather(b, rank)
			closeWindow(b, c.p, rank)
		}}
	},
}
