package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The root sends to two ranks, and each of these to two others, in pieces that
// follow each other down the tree. Two steps bring every rank one piece further.
//
// Cost, for k pieces: the first reaches the last rank after at most 2⌊lg p⌋
// steps, the others follow two steps apart: about 2(⌊lg p⌋ + k − 1)(α + n/k β).
//
// With one piece most ranks idle, and binomial is never slower. With many the
// term in n nears 2nβ whatever p is, as in scatter-allgather, with no fold and
// without p − 1 start-ups. split-binary comes to 1.5nβ.
//
// Foster, Designing and Building Parallel Programs, 11.2.
var bcastBinaryTree = Algorithm{
	Collective: sched.Bcast,
	Name:       "binary-tree",
	Params:     []Param{bestSegment(heapFill)},
	Formula:    "≈ 2(⌊lg p⌋ + k − 1)(α + n/k β), k pieces",
	Prefer:     "long vectors, many ranks",
	cost: func(c call, n float64) model.Cost {
		k := c.pieces(c.number("segment"))
		return moves(heapSteps(c.p, k), n/float64(k))
	},
	build: func(c call) generator {
		k := c.pieces(c.number("segment"))
		return generator{blocks: k, program: func(b *sched.Builder, rank int) {
			if rank == c.root {
				b.Copy(sched.In, whole(k), sched.Out, 0, sched.Replace)
			}
			heapNode(c.p, c.root, rank).pipeDown(b, whole(k))
		}}
	},
}
