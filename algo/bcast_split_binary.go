package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The vector is cut in two halves and the ranks, but for the root, form two
// binary trees of the same size and shape. The root sends the pieces of one
// half down one tree and those of the other half down the other, in turn. At
// the end each rank exchanges halves with the rank at the same position of the
// other tree. If one position is left over, the root sends to it.
//
// Cost, for k pieces: about (2 lg p + k − 2)(α + n/k β) + α + n/2 β.
//
// With many pieces the term in n nears 1.5nβ, where binary-tree comes to 2nβ.
//
// Open MPI has it as split binary tree.
var bcastSplitBinary = Algorithm{
	Collective: sched.Bcast,
	Name:       "split-binary",
	Params:     []Param{bestSegment(func(p int) float64 { return 2 * heapFill(p) })},
	Formula:    "≈ (2 lg p + k − 2)(α + n/k β) + α + n/2 β, k pieces",
	Prefer:     "long vectors, many ranks",
	cost: func(c call, n float64) model.Cost {
		if c.p == 1 {
			return model.Cost{}
		}
		k := c.halfPieces()
		return moves(splitBinarySteps(c.p, k), n/float64(2*k)).Plus(moves(1, n/2))
	},
	build: func(c call) generator {
		k := c.halfPieces()
		return generator{blocks: 2 * k, program: func(b *sched.Builder, rank int) {
			splitBinary(b, c.p, c.root, rank, k)
		}}
	},
}

// halfPieces returns how many segments each half of the vector makes.
func (c call) halfPieces() int { return (c.pieces(c.number("segment")) + 1) / 2 }

// splitBinary numbers the positions of one tree 1, 3, 5, … and those of the
// other 2, 4, 6, …, so that ranks that exchange are neighbors.
func splitBinary(b *sched.Builder, p, root, rank, k int) {
	at := func(position int) int { return (position + root) % p }
	halves := [2]sched.Range{{Lo: k, Hi: 2 * k}, {Lo: 0, Hi: k}} // of even positions, and of odd
	position := (rank - root + p) % p
	if position == 0 {
		b.Copy(sched.In, whole(2*k), sched.Out, 0, sched.Replace)
		for piece := range k {
			for child := 1; child <= min(2, p-1); child++ {
				b.Send(sched.Out, one(halves[child%2].Lo+piece), at(child))
				b.EndStep()
			}
		}
		if p%2 == 0 {
			b.Send(sched.Out, halves[0], at(p-1))
		}
		return
	}
	mine, other := halves[position%2], halves[(position+1)%2]
	splitNode(p, root, position).pipeDown(b, mine)
	partner := (position - 1) ^ 1 + 1
	if partner == p {
		b.Recv(root, sched.Out, other, sched.Replace)
		return
	}
	b.Send(sched.Out, mine, at(partner))
	b.Recv(at(partner), sched.Out, other, sched.Replace)
}

// splitNode returns the node of a position other than the root's.
func splitNode(p, root, position int) node {
	at := func(position int) int {
		if position >= p {
			return -1
		}
		return (position + root) % p
	}
	odd := position % 2
	n := node{root, at(2*position + odd), at(2*position + odd + 2)}
	if position > 2 {
		n.parent = at(((position-1)/2-1)/2*2 + 2 - odd)
	}
	return n
}

// splitBinarySteps returns the number of steps that the pieces of each half
// take, up to the exchange.
func splitBinarySteps(p, pieces int) int {
	if p == 2 {
		return pieces
	}
	return max(1+heapSteps(p/2, 1), 2+heapSteps((p-1)/2, 1)) + 2*(pieces-1)
}
