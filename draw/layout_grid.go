package draw

import (
	"math"
	"math/bits"
	"slices"

	"github.com/chorale-go/chorale/topo"
)

// longRow is the largest ring that is drawn as a row that closes; a larger one
// is drawn round.
const longRow = 16

// grid draws a row, a ring, a mesh or a torus: the first row at the top,
// further dimensions in perspective. It returns how wires bend that close a
// line.
func (l *plan) grid(t *topo.Grid) func(*wire) {
	dims := t.Dims()
	if len(dims) == 1 {
		return l.row(t, dims[0])
	}
	pitch := gridPitch * max(1, 0.7*float64(thick(dims))-0.7) // the more dimensions, the more room
	l.at = lattice(dims, pitch, 1, l.radius)
	return func(w *wire) {
		a, b := coordinates(w.a, dims), coordinates(w.b, dims)
		for k := range dims {
			if a[k]-b[k] > 1 || b[k]-a[k] > 1 {
				// Above rows, left of columns, whichever way the link leads.
				height := 36.0
				if toRight := l.at[w.b].x-l.at[w.a].x > 1; toRight != (k == len(dims)-1) {
					height = -height
				}
				w.curve = closing(l.at[w.a], l.at[w.b], height)
			}
		}
	}
}

// thick returns the number of dimensions that are more than a point.
func thick(dims []int) int {
	n := 0
	for _, size := range dims {
		if size > 1 {
			n++
		}
	}
	return n
}

// closing returns a curve that runs along a line of nodes to the left of who
// goes from a to b: it is steep at both ends.
func closing(a, b point, height float64) curve {
	aside := a.towards(b).left().times(height * 4 / 3)
	return curve{a, a.plus(aside), b.plus(aside), b}
}

func (l *plan) row(t *topo.Grid, p int) func(*wire) {
	if t.Closed() && p > longRow {
		l.at = circle(p, 100)
		return nil
	}
	l.manner, l.pitch = overhead, rowPitch
	for i := range p {
		l.at = append(l.at, point{float64(i) * rowPitch, 0})
	}
	return func(w *wire) {
		if a, b := l.at[w.a], l.at[w.b]; math.Abs(a.x-b.x) > rowPitch*1.5 {
			// From the outer sides of the ends, under all that may be between.
			deep := 4.0 / 3 * (22 + l.arcHeight(math.Abs(a.x-b.x)))
			out := a.minus(b).times(0.09)
			w.curve = curve{a, a.plus(out).plus(point{0, deep}), b.minus(out).plus(point{0, deep}), b}
		}
	}
}

// cube draws a hypercube as the mesh of two in every dimension that it is: the
// lowest bit to the right, the next upwards, the third to the back.
func (l *plan) cube(t *topo.Hypercube) {
	l.bits = max(bits.Len(uint(t.Processors()-1)), 1)
	l.radius = 21
	if l.bits > 4 {
		l.radius = 23
	}
	l.at = lattice(slices.Repeat([]int{2}, bits.Len(uint(t.Processors()-1))), 1.6*gridPitch, -1, l.radius)
}

// lattice places the points of a box, the last dimension fastest: it goes to
// the right, the one before it down (or up, if down is -1), and every other one
// where it leaves points and links apart.
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
				at = append(at, p.plus(next.step.times(float64(i))))
			}
		}
	}
	return at
}

// An axis is a dimension of a lattice: how many points are on its lines, and the
// way from one to the next.
type axis struct {
	n    int
	step point
}

// slant returns the step of a further axis: the shortest of those tried that
// leaves enough room between points and links. The third axis goes up to the
// right, as if to the back; the fourth to the right and the fifth down, beside
// and below what is there.
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

// differences returns the ways from a point of a lattice to all others that any
// point may have.
func differences(axes []axis) []point {
	all := []point{{}}
	for _, a := range axes {
		line := all
		all = nil
		for i := 1 - a.n; i < a.n; i++ {
			for _, p := range line {
				all = append(all, p.plus(a.step.times(float64(i))))
			}
		}
	}
	return all
}

// clearance returns how near a point of a lattice comes to a link that is not
// its own, or a little less than half as near as it comes to another point. The
// differences are those without the last axis. It looks no further once that is
// less than enough.
func clearance(differences []point, axes []axis, enough float64) float64 {
	last := axes[len(axes)-1]
	least := math.Inf(1)
	for i := range last.n {
		for _, p := range differences {
			p = p.plus(last.step.times(float64(i)))
			away := p.length()
			if i == 0 && away < 1e-6 {
				continue // the point itself
			}
			least = min(least, away*0.45, fromLinks(p, axes), fromLinks(point{-p.x, -p.y}, axes))
			if least < enough {
				return least
			}
		}
	}
	return least
}

// fromLinks returns how near p comes to the links that leave the origin, without
// those that end in it.
func fromLinks(p point, axes []axis) float64 {
	least := math.Inf(1)
	for _, a := range axes {
		length := a.step.length()
		along := p.dot(a.step) / length
		if along > 1e-6 && along < length-1e-6 {
			least = min(least, math.Abs(p.dot(a.step.left()))/length)
		}
	}
	return least
}

// coordinates returns a processor's place in every dimension.
func coordinates(v int, dims []int) []int {
	at := make([]int, len(dims))
	for k, n := range slices.Backward(dims) {
		at[k], v = v%n, v/n
	}
	return at
}
