package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// A token goes round the ring of ranks twice. A rank passes it on the first
// time when it has arrived; when it gets the token the second time, all ranks
// have arrived. The last rank knows so the first time.
//
// Cost: 2(p − 1) α.
//
// All messages are between neighbors, one at a time. It is a yardstick;
// dissemination is never slower.
//
// Open MPI has it under this name.
var barrierDoubleRing = Algorithm{
	Collective: sched.Barrier,
	Name:       "double-ring",
	Formula:    "2(p − 1) α",
	Prefer:     "never; a yardstick for the others",
	cost:       func(c call, _ float64) model.Cost { return moves(2*(c.p-1), 0) },
	build: func(c call) generator {
		return generator{program: func(b *sched.Builder, rank int) {
			if c.p == 1 {
				return
			}
			next, previous, last := (rank+1)%c.p, (rank-1+c.p)%c.p, c.p-1
			if rank > 0 {
				hear(b, previous)
			}
			tell(b, next)
			if rank < last {
				hear(b, previous)
			}
			if rank < last-1 {
				tell(b, next)
			}
		}}
	},
}
