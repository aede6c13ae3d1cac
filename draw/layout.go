package draw

import (
	"fmt"
	"math"

	"github.com/chorale-go/chorale/topo"
)

// A plan says where a network is drawn.
type plan struct {
	processors    int
	at            []point // the centre of each vertex: processors, then switches
	width, height float64 // of all vertices and wires, with a margin
	radius        float64 // of a processor's circle
	bits          int     // how many bits the processors' numbers have, where it is these that make the picture; else 0
	wires         []wire  // by their lower directed link
	manner        manner
	pitch         float64 // from processor to processor, where they stand in a row
}

// A wire is a full-duplex link.
type wire struct {
	a, b        int   // vertices
	there, back int   // the directed links from a to b and from b to a
	curve       curve // from the centre of a to that of b
	bent        bool  // is not straight
}

// A manner is how arrows run from processor to processor.
type manner uint8

const (
	beside   manner = iota // near the straight way, around what is in it
	overhead               // in arcs over a row of processors, and back in arcs under it
	beneath                // in arcs under the row, both ways
)

const (
	margin      = 24.0
	nodeRadius  = 17.0
	switchSize  = 12.0
	rowPitch    = 92.0
	gridPitch   = 104.0
	levelHeight = 84.0
)

// The largest pictures that can be read.
const (
	maxNodes  = 64
	maxCube   = 5   // dimensions
	maxArrows = 400 // of a network at one time
	maxInAll  = 2000
)

// legible refuses a network that no one could read.
func legible(t topo.Topology) error {
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

// layout draws up the plan of a network that is legible.
func layout(t topo.Topology) plan {
	l := plan{processors: t.Processors(), radius: nodeRadius}
	var bends func(w *wire)
	switch t := t.(type) {
	case *topo.Grid:
		bends = l.grid(t)
	case *topo.Hypercube:
		l.cube(t)
	case *topo.Tree:
		l.tree(t)
	case *topo.FatTree:
		l.fatTree(t)
	case *topo.Star:
		l.at = append(circle(t.Processors(), 120), point{})
	case *topo.Dragonfly:
		bends = l.dragonfly(t)
	default:
		within := circle(t.Switches(), 60)
		l.at = append(circle(t.Processors(), max(100, float64(t.Switches())*68/(2*math.Pi)+levelHeight)), within...)
	}
	l.wire(t)
	for i := range l.wires {
		w := &l.wires[i]
		if bends != nil {
			bends(w)
		}
		l.clear(w)
		w.bent = w.curve != straight(l.at[w.a], l.at[w.b])
	}
	l.frame()
	return l
}

// wire lays a straight wire for each link.
func (l *plan) wire(t topo.Topology) {
	index := map[[2]int]int{}
	for link := range 2 * t.LinkCount() {
		a, b := t.Ends(link)
		if i, ok := index[[2]int{b, a}]; ok {
			l.wires[i].back = link
			continue
		}
		index[[2]int{a, b}] = len(l.wires)
		l.wires = append(l.wires, wire{a: a, b: b, there: link, curve: straight(l.at[a], l.at[b])})
	}
}

// clear bends a wire that runs over a vertex.
func (l *plan) clear(w *wire) {
	for height := 0.0; height < 160; height += 6 {
		for _, c := range []curve{w.curve, bowed(l.at[w.a], l.at[w.b], -height), bowed(l.at[w.a], l.at[w.b], height)} {
			if l.free(c, w.a, w.b) {
				w.curve = c
				return
			}
		}
	}
}

// free tells whether a curve from a to b runs over no other vertex.
func (l *plan) free(c curve, a, b int) bool {
	bounds := c.bounds()
	for v, p := range l.at {
		if room := l.size(v) + 5; v != a && v != b && bounds.distance(p) < room {
			for i := range 41 {
				if c.at(float64(i)/40).distance(p) < room {
					return false
				}
			}
		}
	}
	return true
}

// size is the radius of the circle around a vertex.
func (l *plan) size(v int) float64 {
	if v < l.processors {
		return l.radius
	}
	return switchSize * 0.75
}

// frame moves everything to where the margin begins.
func (l *plan) frame() {
	b := around(l.at[0], 0, 0)
	for _, p := range l.at {
		b = b.join(around(p, 2*l.radius, 2*l.radius))
	}
	for _, w := range l.wires {
		b = b.join(w.curve.bounds())
	}
	shift := point{margin, margin}.minus(b.min)
	for i := range l.at {
		l.at[i] = l.at[i].plus(shift)
	}
	for i := range l.wires {
		for k := range 4 {
			l.wires[i].curve[k] = l.wires[i].curve[k].plus(shift)
		}
	}
	l.width, l.height = b.max.x-b.min.x+2*margin, b.max.y-b.min.y+2*margin
}

// circle places n vertices clockwise from the top, far enough from each other,
// and at least so far from the middle.
func circle(n int, least float64) []point {
	radius := max(float64(n)*68/(2*math.Pi), least)
	at := make([]point, n)
	for i := range at {
		at[i] = polar(radius, float64(i)/float64(n))
	}
	return at
}

// polar returns the point that far from the middle, so many turns clockwise
// from the top.
func polar(radius, turns float64) point {
	sin, cos := math.Sincos(2 * math.Pi * turns)
	return point{radius * sin, -radius * cos}
}
