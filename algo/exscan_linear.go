package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Each rank receives the combination of all ranks before it, which is its
// result, and sends it to the next rank with its own vector to the right.
//
// Cost: (p − 1)(α + nβ) + (p − 2) nγ.
//
// All messages are between neighbors, and there are fewest of them. Prefer it for
// ranks that share processors; recursive-doubling is as good for two or three
// ranks and better elsewhere.
//
// Grama et al., 4.3.
var exscanLinear = Algorithm{
	Collective: sched.ExScan,
	Name:       "linear",
	Formula:    "(p − 1)(α + nβ) + (p − 2) nγ",
	Prefer:     "ranks that share processors; a yardstick for the others",
	cost: func(c call, n float64) model.Cost {
		cost := moves(c.p-1, n)
		cost.Combines = float64(max(0, c.p-2)) * n
		return cost
	},
	build: func(c call) generator {
		return generator{blocks: 1, scratch: spare(c.p, 1), program: func(b *sched.Builder, rank int) {
			held := sched.In
			if rank > 0 {
				b.Recv(rank-1, sched.Out, whole(1), sched.Replace)
				b.EndStep()
			}
			if rank == c.p-1 {
				return
			}
			if rank > 0 {
				held = withOwn(b)
			}
			b.Send(held, whole(1), rank+1)
		}}
	},
}

// withOwn combines a rank's own vector to the right of its Out, and returns
// where the sum is. Out does not change.
func withOwn(b *sched.Builder) sched.Buffer {
	b.Copy(sched.Out, whole(1), sched.Scratch, 0, sched.Replace)
	b.Copy(sched.In, whole(1), sched.Scratch, 0, sched.Right)
	return sched.Scratch
}
