package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The k-nomial broadcast reversed: in every round a rank takes the vectors of up
// to k − 1 others at once. It combines those below it in descending order, each
// to the left, and those above it in ascending order, each to the right, so
// that ranks stay in order. With k = 2 it is binomial.
//
// Cost with one port: up to (k − 1)⌈log_k p⌉ (α + nβ + nγ), more than binomial.
// But where messages of a round overlap, as in memory, there are only
// ⌈log_k p⌉ rounds to wait for.
//
// Prefer it for short vectors in memory.
//
// Known as k-nomial from MVAPICH and MPICH.
var reduceKnomial = Algorithm{
	Collective: sched.Reduce,
	Name:       "knomial",
	Params:     []Param{radixParam},
	Formula:    "≤ (k − 1)⌈log_k p⌉ (α + nβ + nγ), in ⌈log_k p⌉ rounds",
	Prefer:     "short vectors in memory, any operator",
	cost:       func(c call, n float64) model.Cost { return sums(knomialMessages(c.p, c.number("k")), n) },
	build: func(c call) generator {
		k := c.number("k")
		return generator{blocks: 1, scratch: spare(c.p, 1), program: func(b *sched.Builder, rank int) {
			held := reduceShares(b, interval{0, c.p, c.root}, rank, k, keptBy(rank, c.root))
			if rank == c.root {
				b.Copy(held, whole(1), sched.Out, 0, sched.Replace)
			}
		}}
	},
}

// reduceShares combines block 0 of all positions of an interval at its holder. A
// position collects in kept. It returns where the combination is if rank is the
// holder.
func reduceShares(b *sched.Builder, v interval, rank, k int, kept sched.Buffer) sched.Buffer {
	if v.size() == 1 {
		return sched.In
	}
	own, others := v.shares(k)
	mine := own
	for _, share := range others {
		mine = either(share, mine, rank)
	}
	held := reduceShares(b, mine, rank, k, kept)
	switch {
	case rank == v.holder:
		b.Copy(held, whole(1), kept, 0, sched.Replace)
		above := 0
		for above < len(others) && others[above].lo < own.lo {
			above++
		}
		for i := above - 1; i >= 0; i-- {
			b.Recv(others[i].holder, kept, whole(1), sched.Left)
		}
		for _, share := range others[above:] {
			b.Recv(share.holder, kept, whole(1), sched.Right)
		}
		b.EndStep()
		return kept
	case rank == mine.holder:
		b.Send(held, whole(1), v.holder)
		b.EndStep()
	}
	return held
}
