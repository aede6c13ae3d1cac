package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Ranks stand in a circle. Each takes from the rank 1 position further, then
// from the one 2 further, 4, and so on, all blocks that the other has so far.
// After k steps it has its own block and those of the 2^k − 1 ranks that
// follow. In the last step it takes only the blocks that it lacks.
//
// The blocks of a rank are one range if their numbers go on beyond p where they
// would begin again from 0. They are therefore collected in scratch, and copied
// to their positions at the end.
//
// Cost: ⌈lg p⌉ α + n (p−1)/p β, for any p.
//
// Both terms are the least there is. Prefer it for short blocks when p is no
// power of two; if it is, recursive-doubling does without the copy.
//
// Bruck, Ho, Kipnis, Upfal, Weathersby, Efficient Algorithms for All-to-All
// Communications in Multiport Message-Passing Systems, 1997.
var allgatherBruck = Algorithm{
	Collective: sched.AllGather,
	Name:       "bruck",
	Formula:    "⌈lg p⌉ α + n (p−1)/p β",
	Prefer:     "short blocks, any p",
	cost: func(c call, n float64) model.Cost {
		return model.Cost{Startups: float64(ceilLog(c.p)), Words: share(n, c.p)}
	},
	build: func(c call) generator {
		return generator{blocks: c.p, scratch: 2 * c.p, program: func(b *sched.Builder, rank int) {
			b.Copy(sched.In, one(rank), sched.Scratch, rank, sched.Replace)
			for d := 1; d < c.p; d *= 2 {
				mine := sched.Range{Lo: rank, Hi: rank + min(d, c.p-d)}
				b.Send(sched.Scratch, mine, (rank-d+c.p)%c.p)
				b.Recv((rank+d)%c.p, sched.Scratch, shifted(mine, d), sched.Replace)
				b.EndStep()
			}
			b.Copy(sched.Scratch, sched.Range{Lo: rank, Hi: c.p}, sched.Out, rank, sched.Replace)
			b.Copy(sched.Scratch, sched.Range{Lo: c.p, Hi: c.p + rank}, sched.Out, 0, sched.Replace)
		}}
	},
}
