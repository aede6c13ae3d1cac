package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The vector is cut in p pieces, each rank gets the combination of one, and
// then all ranks gather all pieces. Between a reduction, which would gather
// them at one rank, and a broadcast, which would scatter them again, these two
// cancel.
//
// Cost: that of the reduce-scatter and the allgather. For p a power of two and
// by default, 2 lg p α + 2n (p−1)/p β + n (p−1)/p γ.
//
// Prefer recursive-halving, which folds other p once and not twice and takes
// any operator; this row is for combining phases as one likes: it halves with
// the farthest partner first, and may leave by the ring. The operator must
// commute.
//
// Grama et al., 4.7.1; Thakur, Rabenseifner, Gropp 2005.
var allreduceReduceScatterAllgather = Algorithm{
	Collective: sched.AllReduce,
	Name:       "reduce-scatter-allgather",
	Params: []Param{{
		Key: "reduce-scatter", Default: "recursive-halving", Values: "recursive-halving|ring",
		Doc: "how the pieces are combined",
	}, {
		Key: "allgather", Default: "recursive-doubling", Values: "recursive-doubling|ring",
		Doc: "how the pieces are gathered",
	}},
	Restrictions: Restrictions{Commutative: true},
	Formula:      "2 lg p α + 2n (p−1)/p β + n (p−1)/p γ; a ring: p − 1 for one lg p",
	Prefer:       "long vectors, p a power of two",
	cost: func(c call, n float64) model.Cost {
		scatter, gather := &reduceScatterRecursiveHalving, &allgatherRecursiveDoubling
		if c.word("reduce-scatter") == "ring" {
			scatter = &reduceScatterRing
		}
		if c.word("allgather") == "ring" {
			gather = &allgatherRing
		}
		return scatter.cost(c, n).Plus(gather.cost(c, n))
	},
	build: func(c call) generator {
		scatterRing, gatherRing := c.word("reduce-scatter") == "ring", c.word("allgather") == "ring"
		f := foldRanks(c.p, 0)
		return generator{blocks: c.p, scratch: spare(c.p, c.p), program: func(b *sched.Builder, rank int) {
			l := everyone(c.p)
			if scatterRing {
				held := scatterRound(b, l, rank, 0, sched.In)
				b.Copy(held, one(rank), sched.Out, rank, sched.Replace)
			} else {
				scatterHalving(b, f, rank)
			}
			b.EndStep()
			if gatherRing {
				gatherRound(b, l, rank, sched.Out, 0)
			} else {
				gatherDoubling(b, f, l, rank, sched.Out)
			}
		}}
	},
}
