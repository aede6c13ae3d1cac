package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// As in the scan of that name, a vector from 1, 2, 4, … ranks before goes to
// the left of what a rank holds, and the run of ranks that this stands for
// doubles with every step. But the run ends before the rank itself. The rank
// sends on what it holds with its own vector to the right.
//
// Cost: ⌈lg p⌉ (α + nβ) + (2⌈lg p⌉ − 2) nγ, and one nγ less if p ≤ 1.5 · 2^k for
// the largest 2^k below it.
//
// No algorithm takes fewer steps. It combines twice per step; to shift all
// vectors by one rank and scan them would combine once, for one step more.
// Prefer it unless combining costs more than starting and moving.
//
// Hillis, Steele, Data Parallel Algorithms, 1986; MPICH does the same on a
// hypercube.
var exscanRecursiveDoubling = Algorithm{
	Collective: sched.ExScan,
	Name:       "recursive-doubling",
	Formula:    "⌈lg p⌉ (α + nβ) + (2⌈lg p⌉ − 2) nγ",
	Prefer:     "always",
	cost: func(c call, n float64) model.Cost {
		steps := ceilLog(c.p)
		sums := max(0, 2*steps-2)
		if 4*c.p <= 3<<steps { // the rank that sends to the last one has been idle for a step
			sums--
		}
		cost := moves(steps, n)
		cost.Combines = float64(max(0, sums)) * n
		return cost
	},
	build: func(c call) generator {
		return generator{blocks: 1, scratch: spare(c.p, 1), program: func(b *sched.Builder, rank int) {
			held := sched.In
			for d := 1; d < c.p; d *= 2 {
				if rank+d < c.p {
					if d > 1 && d/2 <= rank { // more has arrived since
						held = withOwn(b)
					}
					b.Send(held, whole(1), rank+d)
				}
				switch {
				case d == 1 && rank > 0:
					b.Recv(rank-1, sched.Out, whole(1), sched.Replace)
				case d <= rank:
					b.Recv(rank-d, sched.Out, whole(1), sched.Left)
				}
				b.EndStep()
			}
		}}
	},
}
