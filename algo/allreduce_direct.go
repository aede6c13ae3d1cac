package algo

import (
	"slices"

	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Every rank sends its vector to all others at once, and combines all of them
// by itself, from left to right like every other rank.
//
// Cost with one port: (p − 1)(α + nβ + nγ). With all ports, or in memory, where a
// vector is published once and read by all, it is one step.
//
// Prefer it for tiny vectors of a few ranks that share memory: no algorithm takes
// fewer steps.
//
// Known among GPUs as one-shot.
var allreduceDirect = Algorithm{
	Collective: sched.AllReduce,
	Name:       "direct",
	Formula:    "(p − 1)(α + nβ + nγ); all ports: α + nβ + (p − 1) nγ",
	Prefer:     "tiny vectors, a few ranks that share memory",
	cost:       func(c call, n float64) model.Cost { return sums(c.p-1, n) },
	build: func(c call) generator {
		return generator{blocks: 1, scratch: max(0, c.p-3), program: func(b *sched.Builder, rank int) {
			exchangeAll(b, allRanks(c.p), rank, sched.In, sched.Out, 0)
		}}
	},
}

// exchangeAll lets some ranks send each other block 0 of what they hold, and
// combines all of it in another buffer, in the same order on every rank. The
// vectors of the ranks before me land there one after another. The vectors of
// the ranks after me wait in scratch, from block later on, until my own is
// combined. The first two ranks need no scratch, because a sum of two can begin
// at either side. Me is a position in the list.
func exchangeAll(b *sched.Builder, ranks []int, me int, held, into sched.Buffer, later int) {
	b.Send(held, whole(1), others(ranks, me)...)
	if me < 2 {
		b.Copy(held, whole(1), into, 0, sched.Replace)
		for i, r := range ranks {
			if i != me {
				b.Recv(r, into, whole(1), beside(me, i))
			}
		}
		b.EndStep()
		return
	}
	b.Recv(ranks[0], into, whole(1), sched.Replace)
	for _, r := range ranks[1:me] {
		b.Recv(r, into, whole(1), sched.Right)
	}
	for i, r := range ranks[me+1:] {
		b.Recv(r, sched.Scratch, one(later+i), sched.Replace)
	}
	b.EndStep()
	b.Copy(held, whole(1), into, 0, sched.Right)
	for i := range ranks[me+1:] {
		b.Copy(sched.Scratch, one(later+i), into, 0, sched.Right)
	}
}

// others returns all ranks of a list but the one at position me, beginning with
// the next. If all ranks send in this order, each receives one message at a
// time.
func others(ranks []int, me int) []int {
	return append(slices.Clone(ranks[me+1:]), ranks[:me]...)
}

// allRanks returns the ranks 0 to p−1.
func allRanks(p int) []int {
	ranks := make([]int, p)
	for r := range ranks {
		ranks[r] = r
	}
	return ranks
}
