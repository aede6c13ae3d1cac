package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// As binary-tree, but in a tree whose left subtrees hold the ranks below and
// whose right subtrees hold those above, so that ranks stay in order. Such a
// tree exists for any root: its subtrees are the ranks below it and those
// above, each as balanced as can be.
//
// Cost, for k pieces: about 2(⌊lg p⌋ + k)(α + n/k β + n/k γ).
//
// Prefer it for long vectors and operators that do not commute. A root in the
// middle makes the tree lower by one level.
//
// Open MPI has an in-order binary tree to the last rank; that any rank can be
// its root is ours.
var reduceInOrderBinary = Algorithm{
	Collective: sched.Reduce,
	Name:       "in-order-binary",
	Params:     []Param{bestSegment(heapFill)},
	Formula:    "≈ 2(⌊lg p⌋ + k)(α + n/k β + n/k γ), k pieces",
	Prefer:     "long vectors, many ranks, any operator",
	cost: func(c call, n float64) model.Cost {
		k := c.pieces(c.number("segment"))
		return sums(inOrderSteps(c.p, c.root, k), n/float64(k))
	},
	build: func(c call) generator {
		k := c.pieces(c.number("segment"))
		return generator{blocks: k, scratch: spare(c.p, k), program: func(b *sched.Builder, rank int) {
			inOrderNode(c.p, c.root, rank).pipeUp(b, k, keptBy(rank, c.root))
		}}
	},
}

// inOrderNode returns the node of a rank.
func inOrderNode(p, root, rank int) node {
	lo, hi, at := 0, p, root
	n := node{-1, top(0, root), top(root+1, p)}
	for at != rank {
		n.parent = at
		if rank < at {
			hi = at
		} else {
			lo = at + 1
		}
		at = top(lo, hi)
		n.left, n.right = top(lo, at), top(at+1, hi)
	}
	return n
}

// top returns the rank from lo to hi that stands above the others, or -1 if
// there are none: their tree has the shape of a heap.
func top(lo, hi int) int {
	n := hi - lo
	switch n {
	case 0:
		return -1
	case 1:
		return lo
	}
	full := 1 << floorLog(n) // positions that the deepest level has room for
	onLast := n - (full - 1)
	return lo + (full/2 - 1) + min(onLast, full/2)
}

// inOrderSteps returns the number of steps that the pieces take.
func inOrderSteps(p, root, pieces int) int {
	below, above := root, p-1-root
	spacing := 2 // steps between two pieces
	if p < 4 && (below == 0 || above == 0) {
		spacing = 1
	}
	first := 0
	switch {
	case p == 1:
		return 0
	case below == 0:
		first = heapSteps(above, 1) + 1
	case above == 0:
		first = heapSteps(below, 1) + 1
	default:
		first = max(heapSteps(above, 1)+2, heapSteps(below, 1)+1)
	}
	return first + spacing*(pieces-1)
}
