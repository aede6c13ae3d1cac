package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// In step i each rank sends to the one i positions further in the circle the
// block that the other combines, and takes its own block of the one i positions
// before it. Blocks so arrive in descending order of ranks: first of those
// below, which go to the left of what is held, then of those above, from the
// last rank down to the next, which are combined separately until they are
// complete. Rank order is kept.
//
// Cost: (p − 1) α + n (p−1)/p β + nγ. Each rank combines p−1 blocks, but some
// join their two halves last, after they have waited for a rank that combined
// in every step; for p = 2 there are no halves, and the γ is n/2.
//
// Nothing is passed on. Prefer it for long blocks: nothing moves less, for any
// operator and any p.
//
// Thakur, Rabenseifner, Gropp 2005; the separate sum of the ranks above is our
// way to serve operators that do not commute.
var reduceScatterPairwise = Algorithm{
	Collective: sched.ReduceScatter,
	Name:       "pairwise",
	Formula:    "(p − 1) α + n (p−1)/p β + nγ",
	Prefer:     "long blocks, any operator",
	cost: func(c call, n float64) model.Cost {
		cost := sums(c.p-1, n/float64(c.p))
		if c.p > 2 {
			cost.Combines = n
		}
		return cost
	},
	build: func(c call) generator {
		return generator{blocks: c.p, scratch: spare(c.p, c.p), program: func(b *sched.Builder, rank int) {
			contribute(b, c.p, rank, false)
		}}
	},
}

// contribute sends each rank its block, takes the rank's own from all others,
// and combines these in its Out: one after another, or all in one step.
func contribute(b *sched.Builder, p, rank int, atOnce bool) {
	mine := one(rank)
	b.Copy(sched.In, mine, sched.Out, rank, sched.Replace)
	for i := 1; i < p; i++ {
		to, from := (rank+i)%p, (rank-i+p)%p
		b.Send(sched.In, one(to), to)
		switch {
		case from < rank:
			b.Recv(from, sched.Out, mine, sched.Left)
		case rank == p-2: // only one is above
			b.Recv(from, sched.Out, mine, sched.Right)
		case from == p-1:
			b.Recv(from, sched.Scratch, mine, sched.Replace)
		default:
			b.Recv(from, sched.Scratch, mine, sched.Left)
		}
		if !atOnce {
			b.EndStep()
		}
	}
	b.EndStep()
	if rank < p-2 {
		b.Copy(sched.Scratch, mine, sched.Out, rank, sched.Right)
	}
}
