package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The vector is cut in p pieces. They are scattered, one to each rank, and then
// all ranks gather all pieces. So a rank passes on pieces where binomial passes
// on the whole vector.
//
// Cost, p a power of two: 2 lg p α + 2n (p−1)/p β; with the ring,
// (lg p + p − 1) α and the same β. Other p fold for recursive doubling, which
// costs up to n β more; the ring needs no fold.
//
// Prefer it to binomial for long vectors. The ring sends only to neighbors and
// starts p−1 messages: it is for very long ones, or for p that would fold.
//
// Barnett, Gupta, Payne, Shuler, van de Geijn, Watts, Interprocessor Collective
// Communication Library, 1994; Grama et al., 4.7.1.
var bcastScatterAllgather = Algorithm{
	Collective: sched.Bcast,
	Name:       "scatter-allgather",
	Params: []Param{{
		Key: "allgather", Default: "recursive-doubling", Values: "recursive-doubling|ring",
		Doc: "how the pieces are gathered again",
	}},
	Formula: "2 lg p α + 2n (p−1)/p β; ring: (lg p + p − 1) α",
	Prefer:  "long vectors",
	cost: func(c call, n float64) model.Cost {
		scatter := scatterBinomial.cost(c, n)
		if c.word("allgather") == "ring" {
			return scatter.Plus(allgatherRing.cost(c, n))
		}
		return scatter.Plus(allgatherRecursiveDoubling.cost(c, n))
	},
	build: func(c call) generator {
		ring := c.word("allgather") == "ring"
		f := foldRanks(c.p, 0)
		return generator{blocks: c.p, program: func(b *sched.Builder, rank int) {
			if rank == c.root {
				b.Copy(sched.In, whole(c.p), sched.Out, 0, sched.Replace)
			}
			l := everyone(c.p)
			scatter(b, l, c.root, rank, location{sched.Out, 0})
			if ring {
				gatherRound(b, l, rank, sched.Out, 0)
			} else {
				gatherDoubling(b, f, l, rank, sched.Out)
			}
		}}
	},
}
