package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The tree-structured sum to rank 0, and then its messages reversed as a
// broadcast of the result.
//
// Cost: ⌈lg p⌉ (2α + 2nβ + nγ).
//
// It is the textbook's first way, and sends only 2(p − 1) messages in all;
// recursive-doubling needs half the steps. The operator must commute.
//
// Pacheco, An Introduction to Parallel Programming, 3.4.1.
var allreduceTree = Algorithm{
	Collective:   sched.AllReduce,
	Name:         "tree",
	Restrictions: Restrictions{Commutative: true},
	Formula:      "⌈lg p⌉ (2α + 2nβ + nγ)",
	Prefer:       "few messages in all; teaching",
	cost: func(c call, n float64) model.Cost {
		return sums(ceilLog(c.p), n).Plus(moves(ceilLog(c.p), n))
	},
	build: func(c call) generator {
		return generator{blocks: 1, program: func(b *sched.Builder, rank int) {
			held := sumTree(b, c.p, 0, rank, sched.Out)
			if rank == 0 {
				b.Copy(held, whole(1), sched.Out, 0, sched.Replace)
			}
			treeBack(b, c.p, rank)
		}}
	},
}

// treeBack sends rank 0's Out to the first so many ranks, along the messages of
// sumTree, the last of them first.
func treeBack(b *sched.Builder, active, rank int) {
	if active <= 1 {
		return
	}
	half, next := active/2, active-active/2
	if rank >= next {
		b.Recv(rank-next, sched.Out, whole(1), sched.Replace)
		b.EndStep()
		return
	}
	treeBack(b, next, rank)
	if rank < half {
		b.Send(sched.Out, whole(1), rank+next)
		b.EndStep()
	}
}
