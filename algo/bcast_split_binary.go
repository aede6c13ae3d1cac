package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The vector is cut in two halves and the ranks, but for the root, stand in two
// binary trees of the same size and shape. The root sends the pieces of one half
// down the one tree and those of the other down the other, in turn. In the end,
// each rank exchanges halves with the one that stands in the same place of the
// other tree. If one place is left over, the root sends to it.
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
	build: func(c call) plan {
		k := c.halfPieces()
		return plan{blocks: 2 * k, program: func(b *sched.Builder, rank int) {
			splitBinary(b, c.p, c.root, rank, k)
		}}
	},
}

// halfPieces returns how many segments each half of the vector makes.
func (c call) halfPieces() int { return (c.pieces(c.number("segment")) + 1) / 2 }

// splitBinary numbers the places of the one tree 1, 3, 5, … and those of the
// other 2, 4, 6, …, so that those to exchange are neighbours.
func splitBinary(b *sched.Builder, p, root, rank, k int) {
	at := func(place int) int { return (place + root) % p }
	halves := [2]sched.Range{{Lo: k, Hi: 2 * k}, {Lo: 0, Hi: k}} // of even places, and of odd
	place := (rank - root + p) % p
	if place == 0 {
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
	mine, other := halves[place%2], halves[(place+1)%2]
	splitNode(p, root, place).pipeDown(b, mine)
	partner := (place - 1) ^ 1 + 1
	if partner == p {
		b.Recv(root, sched.Out, other, sched.Replace)
		return
	}
	b.Send(sched.Out, mine, at(partner))
	b.Recv(at(partner), sched.Out, other, sched.Replace)
}

// splitNode returns the node of a place other than the root's.
func splitNode(p, root, place int) node {
	at := func(place int) int {
		if place >= p {
			return -1
		}
		return (place + root) % p
	}
	odd := place % 2
	n := node{root, at(2*place + odd), at(2*place + odd + 2)}
	if place > 2 {
		n.parent = at(((place-1)/2-1)/2*2 + 2 - odd)
	}
	return n
}

// splitBinarySteps returns how many steps so many pieces of each half take, up
// to the exchange.
func splitBinarySteps(p, pieces int) int {
	if p == 2 {
		return pieces
	}
	return max(1+heapSteps(p/2, 1), 2+heapSteps((p-1)/2, 1)) + 2*(pieces-1)
}
