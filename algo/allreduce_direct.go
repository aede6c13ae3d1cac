package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Every rank hands its vector to all others at once, and combines all of them
// by itself, from left to right as all do. What comes from the ranks before it
// lands in place, one after another. What comes from those after it has to wait
// in scratch until the rank's own has had its turn; the first two ranks need no
// such thing, because a sum of two can be begun at either side.
//
// Cost with all ports, or in memory, where a vector is published once and read
// by all: α + nβ + (p − 1) nγ. With one port it is p − 1 messages.
//
// Prefer it for tiny vectors of a few ranks that share memory: no way takes
// fewer steps.
//
// Those who do it among GPUs call it one-shot.
var allreduceDirect = Algorithm{
	Collective:   sched.AllReduce,
	Name:         "direct",
	Restrictions: Restrictions{AllPort: true},
	Formula:      "α + nβ + (p − 1) nγ",
	Prefer:       "tiny vectors, a few ranks that share memory",
	cost: func(c call, n float64) model.Cost {
		cost := moves(min(1, c.p-1), n)
		cost.Combines = float64(c.p-1) * n
		return cost
	},
	build: func(c call) plan {
		scratch := c.p
		if c.p < 4 {
			scratch = 0
		}
		return plan{blocks: 1, scratch: scratch, program: func(b *sched.Builder, rank int) {
			direct(b, c.p, rank)
		}}
	},
}

func direct(b *sched.Builder, p, rank int) {
	out := whole(1)
	b.Send(sched.In, out, others(p, rank)...)
	if rank < 2 {
		b.Copy(sched.In, out, sched.Out, 0, sched.Replace)
		for r := range p {
			if r != rank {
				b.Recv(r, sched.Out, out, beside(rank, r))
			}
		}
		return
	}
	b.Recv(0, sched.Out, out, sched.Replace)
	for r := 1; r < rank; r++ {
		b.Recv(r, sched.Out, out, sched.Right)
	}
	for r := rank + 1; r < p; r++ {
		b.Recv(r, sched.Scratch, one(r), sched.Replace)
	}
	b.EndStep()
	b.Copy(sched.In, out, sched.Out, 0, sched.Right)
	for r := rank + 1; r < p; r++ {
		b.Copy(sched.Scratch, one(r), sched.Out, 0, sched.Right)
	}
}
