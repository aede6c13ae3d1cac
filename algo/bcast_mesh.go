package algo

import (
	"fmt"
	"math"

	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The ranks stand in a mesh. The root's line along the first dimension gets the
// vector, then all lines along the second at once, and so on; each line does as
// binomial does. On a 4×4 mesh rank r stands in row r div 4 and column r mod 4,
// and a line along the first dimension is a column: 0, 4, 8, 12.
//
// Cost: Σ ⌈lg d⌉ (α + nβ) over the sizes d: that of binomial, if all are powers
// of two.
//
// Prefer it when the network is such a mesh and p is no power of two: messages
// then keep to their lines, and none shares a link.
//
// Grama et al., 4.1.2.
var bcastMesh = Algorithm{
	Collective: sched.Bcast,
	Name:       "mesh",
	Params:     []Param{dimsParam},
	Formula:    "Σ ⌈lg d⌉ (α + nβ), d the sizes of the mesh",
	Prefer:     "short vectors on a mesh or torus",
	cost:       func(c call, n float64) model.Cost { return moves(meshSteps(c.sizes("dims")), n) },
	build: func(c call) generator {
		m := mesh(c.sizes("dims"))
		return generator{blocks: 1, program: func(b *sched.Builder, rank int) {
			if rank == c.root {
				b.Copy(sched.In, whole(1), sched.Out, 0, sched.Replace)
			}
			for d := range m {
				if l, root, me := m.line(d, c.root, rank); l.n > 0 {
					broadcast(b, l, root, me, sched.Out, whole(1))
				}
			}
		}}
	},
}

// A mesh is the sizes of its dimensions. Ranks are numbered row by row, that
// is, the last dimension varies fastest.
type mesh []int

// stride returns the difference between the numbers of neighbors along
// dimension d.
func (m mesh) stride(d int) int {
	n := 1
	for _, size := range m[d+1:] {
		n *= size
	}
	return n
}

// line returns the line of the mesh along dimension d on which a rank takes
// part when the root's data spreads dimension by dimension, with the positions
// of root and rank on it. A line of no ranks means that the rank takes part
// later: it differs from the root in a later dimension.
func (m mesh) line(d, root, rank int) (l line, rootPosition, position int) {
	stride := m.stride(d)
	if rank%stride != root%stride {
		return line{}, 0, 0
	}
	position = rank / stride % m[d]
	return line{rank - position*stride, stride, m[d]}, root / stride % m[d], position
}

func meshSteps(sizes []int) (steps int) {
	for _, d := range sizes {
		steps += ceilLog(d)
	}
	return steps
}

// dimsParam is for algorithms that see the ranks as a mesh.
var dimsParam = Param{
	Key: "dims", Values: "sizes, as in 4x4",
	Doc:   "the sizes of the mesh, their product p; if not given, two as equal as can be",
	parse: parseSizes,
	choose: func(c call) value {
		rows := int(math.Sqrt(float64(c.p)))
		for c.p%rows != 0 {
			rows--
		}
		return sizesOf(rows, c.p/rows)
	},
	check: func(c call, v value) error {
		rest := c.p
		for _, size := range v.sizes {
			if rest%size != 0 {
				rest = 0
			}
			rest /= size
		}
		if rest != 1 {
			return fmt.Errorf("want sizes whose product is %d", c.p)
		}
		return nil
	},
	variants: func(p int) []string {
		tries := []string{fmt.Sprintf("%dx1", p)}
		for d := 2; d*d < p; d++ {
			if p%d == 0 {
				tries = append(tries, fmt.Sprintf("%dx%d", p/d, d), fmt.Sprintf("%dx1x%d", d, p/d))
			}
		}
		if p == 64 {
			tries = append(tries, "4x4x4", "2x2x2x2x2x2")
		}
		return tries
	},
	// To go round a line costs its length, so no shape starts fewer messages than
	// that of the prime factors. A tree costs the logarithm, rounded up for each
	// line, and so one line costs least.
	candidates: func(c call) []value { return []value{sizesOf(c.p), sizesOf(primes(c.p)...)} },
}

// primes returns the prime factors of n, the smallest first, but 1 for 1.
func primes(n int) (factors []int) {
	for d := 2; d*d <= n; d++ {
		for ; n%d == 0; n /= d {
			factors = append(factors, d)
		}
	}
	if n > 1 || factors == nil {
		factors = append(factors, n)
	}
	return factors
}
