package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The root sends to two ranks, and each of these to two others: place v of the
// tree, counted from the root, has the children 2v+1 and 2v+2. With segments,
// the pieces follow each other down the tree. A rank sends a piece to the left,
// then to the right, and takes the next piece while it sends to the right, so
// two steps bring every rank one piece further.
//
// Cost, for k pieces: the first reaches the last rank after at most 2⌊lg p⌋
// steps, the others follow two steps apart: about 2(⌊lg p⌋ + k − 1)(α + n/k β).
//
// Without segments most ranks idle, and binomial is never slower. With them the
// term in n nears 2nβ whatever p is, as in scatter-allgather, with no fold and
// without p − 1 start-ups.
//
// Foster, Designing and Building Parallel Programs, 11.2.
var bcastBinaryTree = Algorithm{
	Collective: sched.Bcast,
	Name:       "binary-tree",
	Params:     []Param{segmentParam},
	Formula:    "≈ 2(⌊lg p⌋ + k − 1)(α + n/k β), k pieces",
	Prefer:     "long vectors cut in segments, many ranks",
	cost: func(c call, n float64) model.Cost {
		k := c.pieces(c.number("segment"))
		return moves(binaryTreeSteps(c.p, k), n/float64(k))
	},
	build: func(c call) plan {
		k := c.pieces(c.number("segment"))
		return plan{blocks: k, program: func(b *sched.Builder, rank int) {
			binaryTree(b, c.p, c.root, rank, k)
		}}
	},
}

func binaryTree(b *sched.Builder, p, root, rank, pieces int) {
	v := (rank - root + p) % p
	at := func(v int) int { return (v + root) % p }
	recv := func(piece int) {
		if v > 0 && piece < pieces {
			b.Recv(at((v-1)/2), sched.Out, one(piece), sched.Replace)
		}
	}
	send := func(piece, to int) {
		if to < p {
			b.Send(sched.Out, one(piece), at(to))
		}
	}
	if v == 0 {
		b.Copy(sched.In, whole(pieces), sched.Out, 0, sched.Replace)
	}
	if recv(0); v > 0 {
		b.EndStep()
	}
	for piece := range pieces {
		send(piece, 2*v+1)
		b.EndStep()
		send(piece, 2*v+2)
		recv(piece + 1)
		b.EndStep()
	}
}

// binaryTreeSteps returns how many steps so many pieces take. A place is
// reached one step after its parent if it is the left child, two if the right,
// so the last place of the tree that is reached is the one on the deepest or
// the next deepest level with most right turns on its way.
func binaryTreeSteps(p, pieces int) int {
	switch {
	case p == 1:
		return 0
	case p == 2:
		return pieces
	}
	depth := floorLog(p)
	onLast := p - 1<<depth // places on the deepest level, less one
	first := max(depth+floorLog(onLast+1), 2*(depth-1))
	return first + 2*(pieces-1)
}
