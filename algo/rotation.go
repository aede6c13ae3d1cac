package algo

import "github.com/chorale-go/chorale/sched"

// A rotation is one of the d ways to number the ranks of a hypercube of d
// dimensions that rotate the bits of their numbers. Bit i of a label stands for
// dimension i + by, counted modulo d.
//
// An algorithm that cuts its data in d pieces, and treats piece j in the
// numbering rotated by j and a constant, uses all dimensions at once, and each
// of them for one piece: when every piece is at bit i of its labels, no two
// pieces are at the same dimension. So with a port for every link, the pieces
// together take no longer than one alone.
//
// Johnsson, Ho, Optimum Broadcasting and Personalized Communication in
// Hypercubes, 1989.
type rotation struct{ d, by int }

// label returns the label of a rank.
func (r rotation) label(rank int) int {
	if r.d == 0 {
		return 0
	}
	by := r.by % r.d
	return rank>>by | rank&(1<<by-1)<<(r.d-by)
}

// rank returns the rank that has a label.
func (r rotation) rank(label int) int { return rotation{r.d, r.d - r.by%r.d}.label(label) }

// link returns the bit of a rank's number that the bit i of its label stands
// for. The rank's neighbor there is rank XOR link.
func (r rotation) link(i int) int { return 1 << ((i + r.by) % r.d) }

// A cube is p = 2^d ranks, each of which has a part of a vector, cut in d pieces.
// All pieces must be equally long. In and Out have a rank's pieces together; in
// Scratch the same piece of all ranks is together, in the order of its labels,
// so that what a message carries is one range.
type cube struct{ d, p int }

func cubeOf(p int) cube { return cube{floorLog(p), p} }

// generator returns the generator of an algorithm on the cube. A cube of one
// rank only copies its part.
func (q cube) generator(scratch int, program func(b *sched.Builder, rank int)) generator {
	if q.d == 0 {
		return generator{blocks: 1, program: func(b *sched.Builder, _ int) {
			b.Copy(sched.In, whole(1), sched.Out, 0, sched.Replace)
		}}
	}
	return generator{blocks: q.p * q.d, scratch: scratch, program: program}
}

// block returns the block of a piece of a rank's part in In and Out.
func (q cube) block(rank, piece int) int { return rank*q.d + piece }

// run returns where Scratch has a piece of n ranks, from a label on.
func (q cube) run(piece, label, n int) sched.Range {
	lo := piece*q.p + label
	return sched.Range{Lo: lo, Hi: lo + n}
}

// eachPiece calls f for every piece of every rank, with where it is in Scratch.
// The labels of piece j are those of the rotation by j + by.
func (q cube) eachPiece(by int, f func(at, piece, rank int)) {
	for piece := range q.d {
		r := rotation{q.d, piece + by}
		for label := range q.p {
			f(q.run(piece, label, 1).Lo, piece, r.rank(label))
		}
	}
}
