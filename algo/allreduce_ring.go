package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The vector is cut in p pieces. Each goes round the ring of ranks to gather
// all contributions, and then round once more to reach all ranks. With
// segments, this is done for one segment of the vector after another, so that
// the ranks' working set stays in their caches.
//
// Cost, k segments: 2k (p − 1) α + 2n (p−1)/p β + n (p−1)/p γ.
//
// The terms in n are the least there is, for any p, and all messages are
// between neighbors. Prefer it for very long vectors; the start-ups grow with
// p. The operator must commute, because only one piece starts at rank 0.
//
// Patarasuk, Yuan, Bandwidth Optimal All-reduce Algorithms for Clusters of
// Workstations, 2009.
var allreduceRing = Algorithm{
	Collective:   sched.AllReduce,
	Name:         "ring",
	Params:       []Param{segmentParam},
	Restrictions: Restrictions{Commutative: true},
	Formula:      "2k (p − 1) α + 2n (p−1)/p β + n (p−1)/p γ, k segments",
	Prefer:       "very long vectors, or p no power of two",
	cost: func(c call, n float64) model.Cost {
		k := c.pieces(c.number("segment"))
		return reduceScatterRing.cost(c, n/float64(k)).Plus(allgatherRing.cost(c, n/float64(k))).Times(float64(k))
	},
	build: func(c call) generator {
		k := c.pieces(c.number("segment"))
		return generator{blocks: k * c.p, scratch: spare(c.p, k*c.p), program: func(b *sched.Builder, rank int) {
			l := everyone(c.p)
			for segment := range k {
				held := scatterRound(b, l, rank, segment*c.p, sched.In)
				b.Copy(held, one(segment*c.p+rank), sched.Out, segment*c.p+rank, sched.Replace)
				gatherRound(b, l, rank, sched.Out, segment*c.p)
			}
		}}
	},
}
