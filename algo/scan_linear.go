package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Each rank waits for the combination of all before it, puts its own to the
// right of that, and hands the result to the next rank.
//
// Cost: (p − 1)(α + nβ + nγ).
//
// All messages are between neighbors, and there are fewest of them. Prefer it for
// ranks that share processors; recursive-doubling is as good for two ranks and
// better elsewhere.
//
// Grama et al., 4.3.
var scanLinear = Algorithm{
	Collective: sched.Scan,
	Name:       "linear",
	Formula:    "(p − 1)(α + nβ + nγ)",
	Prefer:     "ranks that share processors; a yardstick for the others",
	cost:       func(c call, n float64) model.Cost { return sums(c.p-1, n) },
	build: func(c call) generator {
		return generator{blocks: 1, program: func(b *sched.Builder, rank int) {
			if rank == 0 {
				b.Copy(sched.In, whole(1), sched.Out, 0, sched.Replace)
			} else {
				recvCombine(b, sched.In, sched.Out, whole(1), rank-1, sched.Left)
				b.EndStep()
			}
			if rank < c.p-1 {
				b.Send(sched.Out, whole(1), rank+1)
			}
		}}
	},
}
