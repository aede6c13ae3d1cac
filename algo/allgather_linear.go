package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Rank 0 takes each rank's block, one after another, and then sends each rank
// all of them: a linear gather and a linear broadcast.
//
// Cost: 2(p − 1) α + n (p − 1)(1 + 1/p) β.
//
// It is the simplest program; rank 0 is the bottleneck.
var allgatherLinear = Algorithm{
	Collective: sched.AllGather,
	Name:       "linear",
	Formula:    "2(p − 1) α + n (p − 1)(1 + 1/p) β",
	Prefer:     "two ranks; a yardstick for the others",
	cost: func(c call, n float64) model.Cost {
		return gatherLinear.cost(c, n).Plus(bcastLinear.cost(c, n))
	},
	build: func(c call) generator {
		return generator{blocks: c.p, program: func(b *sched.Builder, rank int) {
			if rank > 0 {
				b.Send(sched.In, one(rank), 0)
				b.EndStep()
				b.Recv(0, sched.Out, whole(c.p), sched.Replace)
				return
			}
			b.Copy(sched.In, one(0), sched.Out, 0, sched.Replace)
			for r := 1; r < c.p; r++ {
				b.Recv(r, sched.Out, one(r), sched.Replace)
				b.EndStep()
			}
			for r := 1; r < c.p; r++ {
				b.Send(sched.Out, whole(c.p), r)
				b.EndStep()
			}
		}}
	},
}
