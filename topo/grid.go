package topo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Grid is a linear array, a ring, a mesh or a torus: processors at the
// points of a box, linked to the next in every dimension. In a ring or torus
// every line closes. A closed line of two has one link, not two.
//
// Processors are numbered row by row: the last dimension varies fastest. A
// route goes along the last dimension first, then along the one before it. On a
// closed line it goes the shorter way round, upwards if both are equal.
//
// The bisection width of unequal or odd sizes is that of Aroca and Fernández
// Anta, Bisection (Band)Width of Product Networks, IEEE TPDS 25(3), 2014.
type Grid struct {
	name   string
	closed bool
	lines  []line
	p      int
	links  int
}

// A line is the properties that the lines of one dimension share.
type line struct {
	n      int  // processors on the line
	closed bool // the last is linked to the first
	edges  int  // full-duplex links on the line
	stride int  // from a processor to the next
	first  int  // the dimension's first full-duplex link
}

// NewLinear returns the linear array of p processors: diameter p−1, bisection
// width 1, p−1 links.
func NewLinear(p int) (*Grid, error) { return newGrid("linear", false, []int{p}) }

// NewRing returns the ring of p processors: diameter ⌊p/2⌋, bisection width 2,
// p links.
func NewRing(p int) (*Grid, error) { return newGrid("ring", true, []int{p}) }

// NewMesh returns the mesh of the given sizes. If it is square, √p×√p, it has
// diameter 2(√p−1), bisection width √p and 2(p−√p) links.
func NewMesh(dims ...int) (*Grid, error) {
	return newGrid("mesh:"+sizes(dims), false, dims)
}

// NewTorus returns the torus of the given sizes: a mesh whose lines are closed.
// If it is square, √p×√p, it has diameter 2⌊√p/2⌋, bisection width 2√p and 2p
// links.
func NewTorus(dims ...int) (*Grid, error) {
	return newGrid("torus:"+sizes(dims), true, dims)
}

func newGrid(name string, closed bool, dims []int) (*Grid, error) {
	if len(dims) == 0 {
		return nil, fmt.Errorf("%s has no sizes: want one or more", name)
	}
	directed := 2 * float64(len(dims)) // at most two links upwards and downwards each
	for _, n := range dims {
		if err := checkProcessors(name, n); err != nil {
			return nil, err
		}
		directed *= float64(n)
	}
	if err := checkLinks(name, directed); err != nil {
		return nil, err
	}
	g := &Grid{name: name, closed: closed, lines: make([]line, len(dims)), p: 1}
	for k, n := range slices.Backward(dims) {
		l := line{n: n, closed: closed && n > 2, edges: n - 1, stride: g.p}
		if l.closed {
			l.edges = n
		}
		g.lines[k] = l
		g.p *= n
	}
	for k := range g.lines {
		l := &g.lines[k]
		l.first = g.links
		g.links += g.p / l.n * l.edges
	}
	return g, nil
}

// String returns the text that Parse reads, such as "ring" or "mesh:4x4".
func (g *Grid) String() string { return g.name }

// Processors returns the product of the sizes.
func (g *Grid) Processors() int { return g.p }

// Switches returns 0.
func (g *Grid) Switches() int { return 0 }

// LinkCount returns the number of full-duplex links of all lines.
func (g *Grid) LinkCount() int { return g.links }

// Dims returns the sizes of the dimensions. The last varies fastest.
func (g *Grid) Dims() []int {
	dims := make([]int, len(g.lines))
	for k, l := range g.lines {
		dims[k] = l.n
	}
	return dims
}

// Closed reports whether the grid is a ring or torus, and not a linear array or
// mesh.
func (g *Grid) Closed() bool { return g.closed }

// Diameter returns the sum over the dimensions: n−1 for an open line of n
// processors, ⌊n/2⌋ for a closed one.
func (g *Grid) Diameter() int {
	d := 0
	for _, l := range g.lines {
		if l.closed {
			d += l.n / 2
		} else {
			d += l.n - 1
		}
	}
	return d
}

// Bisection returns the width of the cut across the longest lines, where it is
// narrowest. If these are odd the cut leaves one layer whole, which is cut in
// the same way.
func (g *Grid) Bisection() (int, bool) {
	lines := slices.Clone(g.lines)
	slices.SortFunc(lines, func(a, b line) int { return b.reach(g.closed) - a.reach(g.closed) })
	width, layer := 0, g.p
	for _, l := range lines {
		layer /= l.n
		switch {
		case l.closed:
			width += 2 * layer
		case l.n > 1:
			width += layer
		}
		if l.n%2 == 0 {
			break
		}
	}
	return width, true
}

// reach is a line's length for choosing the cut: a closed line of two has a
// single link where longer closed lines have two, so it counts as one of four.
func (l line) reach(closed bool) int {
	if closed && l.n == 2 {
		return 4
	}
	return l.n
}

// Ports returns the sum over the dimensions: 2, or less for lines of one or two
// processors.
func (g *Grid) Ports() int {
	ports := 0
	for _, l := range g.lines {
		ports += min(l.n-1, 2)
	}
	return ports
}

// AppendRoute appends the route that goes along the last dimension first, and
// round closed lines the shorter way.
func (g *Grid) AppendRoute(dst []int32, from, to int) []int32 {
	low := 0 // the processor's number in the faster dimensions, which are done; slower ones are not begun
	for k := len(g.lines) - 1; k >= 0; k-- {
		l := &g.lines[k]
		var at, goal int
		at, from = from%l.n, from/l.n
		goal, to = to%l.n, to/l.n
		if at != goal {
			edge := l.first + from*l.edges*l.stride + low // the first of the line
			dst = l.appendLinks(dst, edge, at, goal)
		}
		low += goal * l.stride
	}
	return dst
}

// appendLinks appends the directed links from one position on a line to another.
// The edge is the line's first. Upwards, a link has twice the number of its edge,
// and downwards one more.
func (l *line) appendLinks(dst []int32, edge, at, goal int) []int32 {
	up, down := goal-at, at-goal
	if l.closed && up < 0 {
		up += l.n
	} else if l.closed {
		down += l.n
	}
	step := 2 * l.stride
	if down < 0 || up > 0 && up <= down {
		toEnd := min(up, l.n-at)
		dst = appendSeries(dst, 2*edge+at*step, step, toEnd)
		return appendSeries(dst, 2*edge, step, up-toEnd)
	}
	toEnd := min(down, at)
	dst = appendSeries(dst, 2*edge+1+(at-1)*step, -step, toEnd)
	return appendSeries(dst, 2*edge+1+(l.n-1)*step, -step, down-toEnd)
}

// appendSeries appends n numbers, each of which is step more than the one before.
func appendSeries(dst []int32, first, step, n int) []int32 {
	at := len(dst)
	dst = slices.Grow(dst, n)[:at+n]
	for i := range dst[at:] {
		dst[at+i] = int32(first)
		first += step
	}
	return dst
}

// wrap returns a position up to n, where n stands for the first of a closed line.
func (l line) wrap(at int) int {
	if at == l.n {
		return 0
	}
	return at
}

// Ends returns the two processors that a directed link joins.
func (g *Grid) Ends(link int) (from, to int) {
	k := len(g.lines) - 1
	for g.lines[k].first > link/2 {
		k--
	}
	l := g.lines[k]
	i := link/2 - l.first
	low, at, high := i%l.stride, i/l.stride%l.edges, i/l.stride/l.edges
	base := high*l.n*l.stride + low
	from, to = base+at*l.stride, base+l.wrap(at+1)*l.stride
	if link%2 == 1 {
		from, to = to, from
	}
	return from, to
}

// Name returns a processor's number.
func (g *Grid) Name(v int) string { return numbered(v) }

// sizes formats sizes, as in 4x4.
func sizes(dims []int) string {
	words := make([]string, len(dims))
	for i, n := range dims {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, "x")
}
