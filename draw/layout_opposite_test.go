package draw

import (
	"math"
	"slices"
	"testing"

	"github.com/chorale-go/chorale/topo"
)

// gap returns the distance between two curves in their middle thirds, where they are
// the closest.
func gap(a, b bezier) float64 {
	least := math.Inf(1)
	for i := range 11 {
		for k := range 11 {
			least = min(least, a.at(float64(10+i)/30).distance(b.at(float64(10+k)/30)))
		}
	}
	return least
}

func TestOppositeArrowsBetweenTwoRanksLieApart(t *testing.T) {
	const apart = 7.0 // pixels
	for _, text := range []string{"full", "ring", "linear", "star", "tree", "hypercube", "mesh", "torus", "mesh:1x8", "mesh:2x2x2", "fattree:k=4", "dragonfly:2,2,1", "hosts:2"} {
		for _, p := range []int{2, 3, 4, 5, 6, 8, 9, 12, 16} {
			top, err := topo.Parse(text, p)
			if err != nil || top.Processors() != p {
				continue
			}
			l := newLayout(top)
			for distance := 1; distance < p; distance++ {
				for _, exchange := range []func(i int) int{
					func(i int) int { return i ^ distance },
					func(i int) int { return (i + distance) % p },
				} {
					var pairs [][2]int // that exchange, each direction once
					for i := range p {
						j := exchange(i)
						if j >= p || i == j || slices.Contains(pairs, [2]int{i, j}) {
							continue
						}
						pairs = append(pairs, [2]int{i, j}, [2]int{j, i})
					}
					curves := l.arrowCurves(pairs)
					for i := 0; i < len(pairs); i += 2 {
						if g := gap(curves[i], curves[i+1]); g < apart {
							t.Errorf("%s of %d ranks: the two arrows between %d and %d are %.1f apart: want %.0f", text, p, pairs[i][0], pairs[i][1], g, apart)
						}
					}
				}
			}
		}
	}
}
