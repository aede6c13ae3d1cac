package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Every rank sends its block to all others in a single step. The send is a
// multicast: in shared memory the block is published once, and all ranks read
// it.
//
// Cost: (p − 1)(α + n/p β) with one port. With a link for each pair of ranks,
// all of them used at once, α + n/p β.
//
// Prefer it among few ranks, and in shared memory: no block is passed on, and
// no rank waits for the end of another's step.
var allgatherDirect = Algorithm{
	Collective: sched.AllGather,
	Name:       "direct",
	Formula:    "(p − 1)(α + n/p β); all ports: α + n/p β",
	Prefer:     "few ranks, shared memory",
	cost:       func(c call, n float64) model.Cost { return moves(c.p-1, n/float64(c.p)) },
	build: func(c call) generator {
		return generator{blocks: c.p, program: func(b *sched.Builder, rank int) {
			b.Copy(sched.In, one(rank), sched.Out, rank, sched.Replace)
			others := make([]int, c.p-1)
			for i := 1; i < c.p; i++ {
				others[i-1] = (rank + i) % c.p
				from := (rank - i + c.p) % c.p
				b.Recv(from, sched.Out, one(from), sched.Replace)
			}
			b.Send(sched.In, one(rank), others...)
		}}
	},
}
