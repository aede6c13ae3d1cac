package draw

import (
	"math"
	"math/bits"
	"slices"

	"github.com/chorale-go/chorale/topo"
)

// maxRowRing is the largest ring that is drawn as a row with a closing edge. Larger
// rings are drawn as circles.
const maxRowRing = 16

// grid lays out a linear array, a ring, a mesh or a torus: the first row at the
// top, third and further dimensions at a slant. It returns a function that bends
// the edges from the end of a line to its start.
func (l *layout) grid(t *topo.Grid) func(*edge) {
	dims := t.Dims()
	if len(dims) == 1 {
		return l.rowOrRing(t, dims[0])
	}
	pitch := gridPitch * max(1, 0.7*float64(nontrivialDims(dims))-0.7) // the more dimensions, the more room
	l.at = lattice(dims, pitch, 1, l.radius)
	return func(e *edge) {
		a, b := coordinates(e.a, dims), coordinates(e.b, dims)
		for k := range dims {
			if a[k]-b[k] > 1 || b[k]-a[k] > 1 {
				// Above rows and left of columns, in both directions of the link.
				height := 36.0
				if toRight := l.at[e.b].x-l.at[e.a].x > 1; toRight != (k == len(dims)-1) {
					height = -height
				}
				e.curve = wrapCurve(l.at[e.a], l.at[e.b], height)
			}
		}
	}
}

// nontrivialDims returns the number of dimensions with more than one node.
func nontrivialDims(dims []int) int {
	n := 0
	for _, size := range dims {
		if size > 1 {
			n++
		}
	}
	return n
}

// wrapCurve returns a curve from a to b to the left of the nodes between them. It
// is perpendicular to the line at both ends.
func wrapCurve(a, b point, height float64) bezier {
	sideways := a.directionTo(b).normal().scale(height * 4 / 3)
	return bezier{a, a.add(sideways), b.add(sideways), b}
}

func (l *layout) rowOrRing(t *topo.Grid, p int) func(*edge) {
	if t.Closed() && p > maxRowRing {
		l.at = circle(p, 100)
		return nil
	}
	l.arrowStyle, l.pitch = arcsAbove, rowPitch
	for i := range p {
		l.at = append(l.at, point{float64(i) * rowPitch, 0})
	}
	return func(e *edge) {
		if a, b := l.at[e.a], l.at[e.b]; math.Abs(a.x-b.x) > rowPitch*1.5 {
			// From the outer sides of the ends, below the nodes between them.
			depth := 4.0 / 3 * (22 + l.arcHeight(math.Abs(a.x-b.x)))
			out := a.sub(b).scale(0.09)
			e.curve = bezier{a, a.add(out).add(point{0, depth}), b.sub(out).add(point{0, depth}), b}
		}
	}
}

// cube lays out a hypercube as a mesh with two nodes in every dimension: the lowest
// bit to the right, the next upwards, the third to the back.
func (l *layout) cube(t *topo.Hypercube) {
	l.bits = max(bits.Len(uint(t.Processors()-1)), 1)
	l.radius = 21
	if l.bits > 4 {
		l.radius = 23
	}
	l.at = lattice(slices.Repeat([]int{2}, bits.Len(uint(t.Processors()-1))), 1.6*gridPitch, -1, l.radius)
}

// lattice returns the points of a grid, the last dimension fastest. The last
// dimension goes right, the one before it down (up if down is -1), and the others
// at slants that keep points and links apart.
func lattice(dims []int, pitch, down, radius float64) []point {
	at := []point{{}}
	var axes []axis
	for _, n := range slices.Backward(dims) {
		next := axis{n: n}
		switch {
		case n == 1:
			continue
		case len(axes) == 0:
			next.step = point{pitch, 0}
		case len(axes) == 1:
			next.step = point{0, pitch * down}
		default:
			next.step = slant(axes, n, pitch, radius+8)
		}
		axes = append(axes, next)
		line := at
		for i := 1; i < n; i++ {
			for _, p := range line {
				at = append(at, p.add(next.step.scale(float64(i))))
			}
		}
	}
	return at
}

// An axis is a dimension of a lattice: the number of points on a line, and the
// vector from one point to the next.
type axis struct {
	n    int
	step point
}

// slant returns the step of the next axis, with n points: the shortest candidate
// that keeps points and links apart by room. The third axis goes to the upper
// right, as if to the back; the fourth goes right and the fifth down, past the
// points of the other axes.
func slant(axes []axis, n int, pitch, room float64) point {
	preferred := []float64{0.105, -0.04, -0.29}[(len(axes)-2)%3] // turns from the right, upwards
	others := differences(axes)
	length := 0.72 * pitch
	if len(axes) > 2 {
		var far point
		for _, p := range others {
			far = point{max(far.x, p.x), max(far.y, p.y)}
		}
		length = 0.95 * []float64{length, far.x, far.y}[(len(axes)-2)%3]
	}
	best, most := point{}, -1.0
	for ; length < 12*pitch; length *= 1.06 {
		for i := range 41 {
			aside := 0.005 * float64((i+1)/2)
			if i%2 == 1 {
				aside = -aside
			}
			step := polar(length, 0.25-preferred-aside)
			clear := clearance(others, append(axes[:len(axes):len(axes)], axis{n, step}), most)
			if clear >= room {
				return step
			}
			if clear > most+0.5 {
				best, most = step, clear
			}
		}
	}
	return best
}

// differences returns the vectors between all pairs of points of a lattice.
func differences(axes []axis) []point {
	all := []point{{}}
	for _, a := range axes {
		line := all
		all = nil
		for i := 1 - a.n; i < a.n; i++ {
			for _, p := range line {
				all = append(all, p.add(a.step.scale(float64(i))))
			}
		}
	}
	return all
}

// clearance returns the least distance of a point of a lattice from the links of
// other points, or 0.45 times its least distance from another point if that is
// less. The differences are those without the last axis. A result below limit may
// be too high.
func clearance(differences []point, axes []axis, limit float64) float64 {
	last := axes[len(axes)-1]
	nearest := math.Inf(1)
	for i := range last.n {
		for _, p := range differences {
			p = p.add(last.step.scale(float64(i)))
			distance := p.length()
			if i == 0 && distance < 1e-6 {
				continue // the point itself
			}
			nearest = min(nearest, distance*0.45, distanceToLinks(p, axes), distanceToLinks(point{-p.x, -p.y}, axes))
			if nearest < limit {
				return nearest
			}
		}
	}
	return nearest
}

// distanceToLinks returns the distance of p from the links that leave the origin
// and pass p.
func distanceToLinks(p point, axes []axis) float64 {
	least := math.Inf(1)
	for _, a := range axes {
		length := a.step.length()
		along := p.dot(a.step) / length
		if along > 1e-6 && along < length-1e-6 {
			least = min(least, math.Abs(p.dot(a.step.normal()))/length)
		}
	}
	return least
}

// coordinates returns the coordinates of a processor.
func coordinates(v int, dims []int) []int {
	at := make([]int, len(dims))
	for k, n := range slices.Backward(dims) {
		at[k], v = v%n, v/n
	}
	return at
}
