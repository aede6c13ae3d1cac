package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The root takes the vector of one rank after another. It takes those below it
// in descending order, each to the left of what it holds, and then those above
// it in ascending order, each to the right: so ranks stay in order.
//
// Cost: (p − 1)(α + nβ + nγ).
//
// It is the simplest program; for two or three ranks nothing is faster.
//
// Grama et al., 4.1.
var reduceLinear = Algorithm{
	Collective: sched.Reduce,
	Name:       "linear",
	Formula:    "(p − 1)(α + nβ + nγ)",
	Prefer:     "two or three ranks; a yardstick for the others",
	cost:       func(c call, n float64) model.Cost { return sums(c.p-1, n) },
	build: func(c call) generator {
		return generator{blocks: 1, program: func(b *sched.Builder, rank int) {
			reduceOneByOne(b, c.p, c.root, rank)
		}}
	},
}

// reduceOneByOne combines block 0 of every In in the root's Out.
func reduceOneByOne(b *sched.Builder, p, root, rank int) {
	if rank != root {
		b.Send(sched.In, whole(1), root)
		return
	}
	b.Copy(sched.In, whole(1), sched.Out, 0, sched.Replace)
	for r := rank - 1; r >= 0; r-- {
		b.Recv(r, sched.Out, whole(1), sched.Left)
		b.EndStep()
	}
	for r := rank + 1; r < p; r++ {
		b.Recv(r, sched.Out, whole(1), sched.Right)
		b.EndStep()
	}
}
