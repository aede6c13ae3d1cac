package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The word that all have come gathers along a binomial tree at rank 0, and goes
// back along the same tree.
//
// Cost: 2⌈lg p⌉ α.
//
// It sends the fewest messages, 2(p − 1) in all, and every rank talks to few
// others. dissemination takes half the steps.
//
// Mellor-Crummey, Scott, Algorithms for Scalable Synchronization on
// Shared-Memory Multiprocessors, 1991 (the tournament barrier).
var barrierTree = Algorithm{
	Collective: sched.Barrier,
	Name:       "tree",
	Formula:    "2⌈lg p⌉ α",
	Prefer:     "few messages in all",
	cost:       func(c call, _ float64) model.Cost { return moves(2*ceilLog(c.p), 0) },
	build: func(c call) generator {
		return generator{program: func(b *sched.Builder, rank int) {
			bit := 1
			for ; bit < c.p && rank&bit == 0; bit *= 2 {
				if rank+bit < c.p {
					hear(b, rank+bit)
				}
			}
			if rank > 0 {
				tell(b, rank-bit)
				hear(b, rank-bit)
			}
			for bit /= 2; bit > 0; bit /= 2 {
				if rank+bit < c.p {
					tell(b, rank+bit)
				}
			}
		}}
	},
}

// tell is a step that sends an empty message.
func tell(b *sched.Builder, to int) {
	b.Send(sched.In, whole(0), to)
	b.EndStep()
}

// hear is a step that takes an empty message.
func hear(b *sched.Builder, from int) {
	b.Recv(from, sched.Out, whole(0), sched.Replace)
	b.EndStep()
}
