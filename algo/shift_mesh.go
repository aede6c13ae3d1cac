package algo

import (
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The ranks stand in a mesh whose lines are rings, and the distance q of the
// shift has a digit for each dimension, as a rank's number has. All vectors
// first go along their rows, as far as the last digit says. A vector that
// passes the end of a row is then one row short. All vectors of a column are,
// or none: each column goes on as far as the digit before says, and those one
// further. More dimensions follow in the same way. Every line is a ring of its
// own, and takes the shorter way round.
//
// Cost, on R×C ranks: (h + v)(α + nβ). The rows go h = min(a, C − a) hops, where
// a = q mod C; the columns go v, the longer way of those by b = ⌊q/C⌋ and, if a
// is not 0, by b + 1. On √p×√p ranks that is at most √p messages. The books let
// the columns that are short catch up first, while the others wait, which takes
// up to √p + 1.
//
// All messages are between neighbors, and none shares a link. Prefer it on a
// torus, unless q is a step or two along one dimension, where those of direct do
// not share links either.
//
// Grama et al., 4.6.
var shiftMesh = Algorithm{
	Collective: sched.Shift,
	Name:       "mesh",
	Params:     []Param{dimsParam},
	Formula:    "≤ (Σ ⌊d/2⌋)(α + nβ), d the sizes of the mesh",
	Prefer:     "a torus",
	cost: func(c call, n float64) model.Cost {
		return moves(mesh(c.sizes("dims")).shiftHops(c.root), n)
	},
	build: func(c call) generator {
		m := mesh(c.sizes("dims"))
		return generator{blocks: 1, scratch: spareTurn(m.shiftHops(c.root)), program: func(b *sched.Builder, rank int) {
			hops := 0
			for d, n := range m {
				hops += hopsRound(n, m.shiftAlong(d, c.root, rank))
			}
			held := sched.In
			for d := len(m) - 1; d >= 0; d-- {
				l, me := m.through(d, rank)
				by := m.shiftAlong(d, c.root, rank)
				held = shiftRound(b, l, me, by, held, hops)
				hops -= hopsRound(l.n, by)
			}
			b.Copy(held, whole(1), sched.Out, 0, sched.Replace)
		}}
	},
}

// shiftAlong returns how far a shift by q goes along dimension d, on the line
// of a rank. The later dimensions are done, so the vector of a rank with a
// lower number than q in them has passed the end of a line: it goes one
// further.
func (m mesh) shiftAlong(d, q, rank int) int {
	stride := m.stride(d)
	by := q / stride % m[d]
	if rank%stride < q%stride {
		by++
	}
	return by
}

// shiftHops returns the number of hops of a shift by q on the longest path.
// From the last dimension on, it keeps the longest of the vectors that passed
// an end in the dimension before, and of those that did not; -1 says that there
// are none.
func (m mesh) shiftHops(q int) int {
	longest := [2]int{0, -1}
	for d := len(m) - 1; d >= 0; d-- {
		n, digit := m[d], q/m.stride(d)%m[d]
		next := [2]int{-1, -1}
		for carry, hops := range longest {
			if hops < 0 {
				continue
			}
			hops += hopsRound(n, digit+carry)
			if digit+carry < n {
				next[0] = max(next[0], hops)
			}
			if digit+carry > 0 {
				next[1] = max(next[1], hops)
			}
		}
		longest = next
	}
	return max(longest[0], longest[1])
}
