package algo

// A rotation is one of the d ways to number the ranks of a hypercube of d
// dimensions that rotate the bits of their numbers. Bit i of a label stands for
// dimension i + by, counted modulo d.
//
// What is cut in d pieces, and done with piece j in the numbering rotated by j
// and a constant, uses all dimensions at once, and each of them for one piece:
// when every piece has come to bit i of its labels, no two pieces have come to
// the same dimension. So with a port for every link, the pieces take no longer
// together than one alone.
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

// link returns the bit of a rank's number that the bit i of its label stands
// for. The rank's neighbour there is rank XOR link.
func (r rotation) link(i int) int { return 1 << ((i + r.by) % r.d) }
