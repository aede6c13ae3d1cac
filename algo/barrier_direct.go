package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Every rank sends every other rank an empty message when it arrives, in a
// single step.
//
// Cost: (p − 1) α with one port. With a link for each pair of ranks, or where one
// message reaches all, α.
//
// Prefer it for a few ranks that read what another has written once.
var barrierDirect = Algorithm{
	Collective: sched.Barrier,
	Name:       "direct",
	Formula:    "(p − 1) α; all ports: α",
	Prefer:     "a few ranks that share memory",
	cost:       func(c call, _ float64) model.Cost { return moves(c.p-1, 0) },
	build: func(c call) generator {
		return generator{program: func(b *sched.Builder, rank int) {
			all := make([]int, c.p-1)
			for i := range all {
				all[i] = (rank + i + 1) % c.p
				b.Recv((rank-i-1+c.p)%c.p, sched.Out, whole(0), sched.Replace)
			}
			if len(all) > 0 {
				b.Send(sched.In, whole(0), all...)
			}
		}}
	},
}
