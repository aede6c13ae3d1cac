package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The broadcast along a binary tree reversed: a rank takes a piece from the
// right, combines it, takes it from the left, combines it, and hands it up while
// the next comes from the right.
//
// Cost, for k pieces: about 2(⌊lg p⌋ + k − 1)(α + n/k β + n/k γ).
//
// With many pieces the terms in n near 2n (β + γ) whatever p is. The operator
// must commute, because the ranks of a subtree are not neighbors;
// in-order-binary is the tree for others.
//
// Foster, Designing and Building Parallel Programs, 11.2.
var reduceBinaryTree = Algorithm{
	Collective:   sched.Reduce,
	Name:         "binary-tree",
	Params:       []Param{bestSegment(heapFill)},
	Restrictions: Restrictions{Commutative: true},
	Formula:      "≈ 2(⌊lg p⌋ + k − 1)(α + n/k β + n/k γ), k pieces",
	Prefer:       "long vectors, many ranks",
	cost: func(c call, n float64) model.Cost {
		k := c.pieces(c.number("segment"))
		return sums(heapSteps(c.p, k), n/float64(k))
	},
	build: func(c call) generator {
		k := c.pieces(c.number("segment"))
		return generator{blocks: k, scratch: spare(c.p, k), program: func(b *sched.Builder, rank int) {
			heapNode(c.p, c.root, rank).pipeUp(b, k, keptBy(rank, c.root))
		}}
	},
}
