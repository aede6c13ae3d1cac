package draw

import (
	"fmt"
	"math"

	"github.com/chorale-go/chorale/topo"
)

// A layout is the drawing of a network without its messages. Lengths are in
// pixels.
type layout struct {
	processors    int
	at            []point // the center of each vertex: processors, then switches
	width, height float64 // of all vertices and edges, with a margin
	radius        float64 // of a processor's circle
	bits          int     // of the binary numbers of a hypercube's processors; else 0
	edges         []edge  // by their lower directed link
	arrowStyle    arrowStyle
	pitch         float64 // between processors in a row
}

// An edge is a full-duplex link.
type edge struct {
	a, b              int    // vertices
	forward, backward int    // the directed links from a to b and from b to a
	curve             bezier // from the center of a to the center of b
	bent              bool   // not straight
}

// An arrowStyle is the shape of arrows between processors.
type arrowStyle uint8

const (
	arrowsBeside arrowStyle = iota // close to a straight line, around other nodes
	arcsAbove                      // to the right above a row of processors, to the left below it
	arcsBelow                      // both directions below the row
)

const (
	margin      = 24.0
	nodeRadius  = 17.0
	switchSize  = 12.0
	rowPitch    = 92.0
	gridPitch   = 104.0
	levelHeight = 84.0
)

// Limits above which a picture is illegible.
const (
	maxNodes  = 64
	maxCube   = 5    // dimensions
	maxArrows = 400  // in a panel
	maxTotal  = 2000 // arrows, or nodes, in all panels
)

// checkReadable returns an error if a network is too large to be read.
func checkReadable(t topo.Topology) error {
	p := t.Processors()
	if _, ok := t.(*topo.Hypercube); ok && p > 1<<maxCube {
		return fmt.Errorf("a picture of a hypercube of %d processors: want at most %d", p, 1<<maxCube)
	}
	if p > maxNodes {
		return fmt.Errorf("a picture of %v with %d processors: want at most %d", t, p, maxNodes)
	}
	if n := t.Switches(); n > 2*maxNodes {
		return fmt.Errorf("a picture of %v with %d switches: want at most %d", t, n, 2*maxNodes)
	}
	return nil
}

// newLayout lays out a network that passes checkReadable.
func newLayout(t topo.Topology) layout {
	l := layout{processors: t.Processors(), radius: nodeRadius}
	var bend func(e *edge)
	switch t := t.(type) {
	case *topo.Grid:
		bend = l.grid(t)
	case *topo.Hypercube:
		l.cube(t)
	case *topo.Tree:
		l.tree(t)
	case *topo.FatTree:
		l.fatTree(t)
	case *topo.Hosts:
		l.hosts(t)
	case *topo.Star:
		l.at = append(circle(t.Processors(), 120), point{})
	case *topo.Dragonfly:
		bend = l.dragonfly(t)
	default:
		switches := circle(t.Switches(), 60)
		l.at = append(circle(t.Processors(), max(100, float64(t.Switches())*68/(2*math.Pi)+levelHeight)), switches...)
	}
	l.addEdges(t)
	for i := range l.edges {
		e := &l.edges[i]
		if bend != nil {
			bend(e)
		}
		l.bendAroundNodes(e)
		e.bent = e.curve != straight(l.at[e.a], l.at[e.b])
	}
	l.addMargin()
	return l
}

// addEdges adds a straight edge for each full-duplex link.
func (l *layout) addEdges(t topo.Topology) {
	index := map[[2]int]int{}
	for link := range 2 * t.LinkCount() {
		a, b := t.Ends(link)
		if i, ok := index[[2]int{b, a}]; ok {
			l.edges[i].backward = link
			continue
		}
		index[[2]int{a, b}] = len(l.edges)
		l.edges = append(l.edges, edge{a: a, b: b, forward: link, curve: straight(l.at[a], l.at[b])})
	}
}

// bendAroundNodes bends an edge that would cross another vertex.
func (l *layout) bendAroundNodes(e *edge) {
	for height := 0.0; height < 160; height += 6 {
		for _, c := range []bezier{e.curve, bow(l.at[e.a], l.at[e.b], -height), bow(l.at[e.a], l.at[e.b], height)} {
			if l.isClear(c, e.a, e.b) {
				e.curve = c
				return
			}
		}
	}
}

// isClear reports whether a curve from a to b crosses no other vertex.
func (l *layout) isClear(c bezier, a, b int) bool {
	bounds := c.bounds()
	for v, p := range l.at {
		if distance := l.radiusOf(v) + 5; v != a && v != b && bounds.distance(p) < distance {
			for i := range 41 {
				if c.at(float64(i)/40).distance(p) < distance {
					return false
				}
			}
		}
	}
	return true
}

// radiusOf returns the radius of the circle around a vertex.
func (l *layout) radiusOf(v int) float64 {
	if v < l.processors {
		return l.radius
	}
	return switchSize * 0.75
}

// addMargin moves the layout to the first quadrant and adds the margin.
func (l *layout) addMargin() {
	b := rectAround(l.at[0], 0, 0)
	for _, p := range l.at {
		b = b.union(rectAround(p, 2*l.radius, 2*l.radius))
	}
	for _, e := range l.edges {
		b = b.union(e.curve.bounds())
	}
	shift := point{margin, margin}.sub(b.min)
	for i := range l.at {
		l.at[i] = l.at[i].add(shift)
	}
	for i := range l.edges {
		for k := range 4 {
			l.edges[i].curve[k] = l.edges[i].curve[k].add(shift)
		}
	}
	l.width, l.height = b.max.x-b.min.x+2*margin, b.max.y-b.min.y+2*margin
}

// circle places n vertices clockwise from the top, 68 pixels apart, on a circle of
// at least the given radius.
func circle(n int, least float64) []point {
	radius := max(float64(n)*68/(2*math.Pi), least)
	at := make([]point, n)
	for i := range at {
		at[i] = polar(radius, float64(i)/float64(n))
	}
	return at
}

// polar returns the point at a radius around the origin, at an angle in turns
// clockwise from the top.
func polar(radius, turns float64) point {
	sin, cos := math.Sincos(2 * math.Pi * turns)
	return point{radius * sin, -radius * cos}
}
