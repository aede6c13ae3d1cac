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
	cost:       func(c call, n float64) model.Cost { return contributeCost(c.p, n/float64(c.p)) },
	build: func(c call) generator {
		return generator{blocks: c.p, scratch: spare(c.p, c.p), program: func(b *sched.Builder, rank int) {
			contribute(b, everyone(c.p), rank, location{sched.In, 0}, location{sched.Out, 0}, location{sched.Scratch, 0}, false)
		}}
	},
}

// contributeCost is the cost of contribute among p positions, for parts of so many words
// each, one after another.
func contributeCost(p int, part float64) model.Cost {
	cost := sums(p-1, part)
	if p > 2 {
		cost.Combines = float64(p) * part
	}
	return cost
}

// contribute sends each position of a row, from held, the parts that it stands for,
// takes those that position me stands for from all others, and combines them at out: one
// after another, or all in one step. The sum of the positions above me is made at above.
// A position that stands for no parts gets no message. Above must not be out.
func contribute(b *sched.Builder, l partRow, me int, held, out, above location, atOnce bool) {
	n, mine := l.size(), l.parts(me, me+1)
	b.Copy(held.buffer, held.blocks(mine), out.buffer, out.blocks(mine).Lo, sched.Replace)
	recv := func(from int, into location, how sched.Combine) {
		b.Recv(l.rank(from), into.buffer, into.blocks(mine), how)
	}
	for i := 1; i < n; i++ {
		to, from := (me+i)%n, (me-i+n)%n
		if theirs := l.parts(to, to+1); theirs.Len() > 0 {
			b.Send(held.buffer, held.blocks(theirs), l.rank(to))
		}
		switch {
		case mine.Len() == 0:
		case from < me:
			recv(from, out, sched.Left)
		case me == n-2: // only one is above
			recv(from, out, sched.Right)
		case from == n-1:
			recv(from, above, sched.Replace)
		default:
			recv(from, above, sched.Left)
		}
		if !atOnce {
			b.EndStep()
		}
	}
	b.EndStep()
	if me < n-2 {
		b.Copy(above.buffer, above.blocks(mine), out.buffer, out.blocks(mine).Lo, sched.Right)
	}
}
