package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// A rank has its own block, then also that of the rank after it, then those of
// the next two, and so on round the circle. In each round it takes a run of
// blocks from the rank as far ahead as its own run is long: by the skips of a
// circulant graph, so that the last round brings exactly what is missing.
//
// Cost: ⌈lg p⌉ α + n (p−1)/p β, for any p. No algorithm costs less.
//
// It is the allgather to prefer unless p is a power of two, where
// recursive-doubling is as good and needs no copies, or blocks are so long that
// neighbors should exchange them.
//
// Bruck et al. 1997; with these skips Träff, Optimal, Non-pipelined
// Reduce-scatter and Allreduce Algorithms, 2024, arXiv 2410.14234.
var allgatherCirculant = Algorithm{
	Collective: sched.AllGather,
	Name:       "circulant",
	Formula:    "⌈lg p⌉ α + n (p−1)/p β",
	Prefer:     "short blocks, p no power of two",
	cost:       func(c call, n float64) model.Cost { return circulantCost(c.p, n) },
	build: func(c call) generator {
		g := newCirculant(c.p)
		return generator{blocks: c.p, scratch: 2 * c.p, program: func(b *sched.Builder, rank int) {
			b.Copy(sched.In, one(rank), sched.Scratch, rank, sched.Replace)
			g.gather(b, rank)
			closeWindow(b, c.p, rank)
		}}
	},
}

// circulantCost is the cost of gather, and but for combining of scatter.
func circulantCost(p int, n float64) model.Cost {
	return model.Cost{Startups: float64(ceilLog(p)), Words: share(n, p)}
}

// gather fills the window of a rank with all blocks. To begin with, its own is
// there.
func (g circulant) gather(b *sched.Builder, rank int) {
	for k := range g.rounds() {
		skip, more := g.skips[k], g.skips[k+1]-g.skips[k]
		b.Send(sched.Scratch, window(rank, more), (rank-skip+g.p)%g.p)
		b.Recv((rank+skip)%g.p, sched.Scratch, window(rank+skip, more), sched.Replace)
		b.EndStep()
	}
}
