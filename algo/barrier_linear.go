package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// All ranks tell rank 0 that they have come. When it has heard of all, it tells
// them so.
//
// Cost: 2(p − 1) α with one port. In memory, where ranks need no port to look
// at each other, it is two steps: many messages at once, then one for all.
//
// Prefer it for a few ranks that share memory; dissemination elsewhere.
//
// Mellor-Crummey, Scott, Algorithms for Scalable Synchronization on
// Shared-Memory Multiprocessors, 1991 (the central barrier).
var barrierLinear = Algorithm{
	Collective: sched.Barrier,
	Name:       "linear",
	Formula:    "2(p − 1) α; 2α with p − 1 ports",
	Prefer:     "a few ranks that share memory",
	cost:       func(c call, _ float64) model.Cost { return moves(2*(c.p-1), 0) },
	build: func(c call) generator {
		return generator{program: func(b *sched.Builder, rank int) {
			if rank > 0 {
				tell(b, 0)
				hear(b, 0)
				return
			}
			for r := 1; r < c.p; r++ {
				b.Recv(r, sched.Out, whole(0), sched.Replace)
			}
			b.EndStep()
			b.Send(sched.In, whole(0), others(allRanks(c.p), 0)...)
		}}
	},
}
