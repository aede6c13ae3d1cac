package draw

import "math"

// apart is how far the arrows of the two directions are at least from each other in
// their middle, in pixels: an arrowhead is as wide.
const apart = 9.0

// arrowCurves returns the curves of arrows between pairs of processors, from the
// rim of one circle to the rim of the other. They avoid other processors and, if
// possible, each other and the edges. Equal lists of pairs have equal curves.
func (l *layout) arrowCurves(pairs [][2]int) []bezier {
	occupied := newOccupancy(l)
	curves := make([]bezier, len(pairs))
	chosen := map[[2]int]bezier{}
	for i, pair := range pairs {
		opposite, exchange := chosen[[2]int{pair[1], pair[0]}]
		best, least := bezier{}, math.Inf(1)
		e, _ := l.edgeBetween(pair[0], pair[1])
		for k, curve := range l.candidateCurves(pair[0], pair[1]) {
			cost := 2*float64(k) + occupied.cost(curve)
			if e != nil {
				cost = float64(k) // beside an edge there is always room
			}
			cost += 40 * float64(l.pointsOnNodes(curve, pair))
			if exchange && curve.gap(opposite.reverse()) < apart {
				cost += 200 // two arrows would look like one with two heads
			}
			if cost < least-1e-6 {
				best, least = curve, cost
			}
		}
		chosen[pair] = best
		occupied.add(best, i)
		curves[i] = best.trim(l.radius+1.5, l.radius+3)
	}
	return curves
}

// candidateCurves returns the possible curves of an arrow between two centers,
// the preferred one first.
func (l *layout) candidateCurves(from, to int) []bezier {
	a, b := l.at[from], l.at[to]
	length := a.distance(b)
	e, reversed := l.edgeBetween(from, to)
	switch {
	case e != nil && e.bent:
		curve := e.curve
		if reversed {
			curve = curve.reverse()
		}
		pushed := curve.offset(18)
		pushed[0], pushed[3] = a, b
		return []bezier{pushed}
	case e != nil && l.arrowStyle == arrowsBeside:
		// The two directions use different sides, unless a node is in the way.
		h := 8 + 0.015*length
		return []bezier{bow(a, b, h), bow(a, b, -h), bow(a, b, 2*h), bow(a, b, -2*h), bow(a, b, 4*h), bow(a, b, -4*h)}
	case l.arrowStyle == arcsAbove:
		return []bezier{arch(a, b, l.arcHeight(length))}
	case l.arrowStyle == arcsBelow && b.x > a.x:
		return []bezier{arch(a, b, -l.arcHeight(length))}
	case l.arrowStyle == arcsBelow:
		return []bezier{arch(a, b, 12+1.12*l.arcHeight(length))} // below the arc of the opposite direction
	}
	var curves []bezier
	heights := []float64{0.2 * length, 0.27 * length, 0.14 * length, 0.36 * length, 0.09 * length, 0.5 * length}
	for _, h := range heights {
		curves = append(curves, bow(a, b, h), bow(a, b, -h))
	}
	return curves
}

// arcHeight returns the height of an arc over a row: low between neighbors, then
// growing less than linearly, so that long rows do not make high figures.
func (l *layout) arcHeight(length float64) float64 {
	if length < 1.5*l.pitch {
		return 15
	}
	return 45 * math.Pow(length/(2*rowPitch), 0.83)
}

// edgeBetween returns the edge between two vertices, or nil. The edge is reversed
// if it leads from b to a.
func (l *layout) edgeBetween(a, b int) (e *edge, reversed bool) {
	for i := range l.edges {
		switch e := &l.edges[i]; {
		case e.a == a && e.b == b:
			return e, false
		case e.a == b && e.b == a:
			return e, true
		}
	}
	return nil, false
}

// pointsOnNodes counts the points of a curve, out of 25, that are on or within 6
// pixels of a vertex other than its ends.
func (l *layout) pointsOnNodes(c bezier, ends [2]int) (n int) {
	var points [curveSamples + 1]point
	b := rect{c[0], c[0]}
	for i := range points {
		points[i] = c.at(float64(i) / curveSamples)
		b = b.union(rect{points[i], points[i]})
	}
	for v, p := range l.at {
		distance := l.radiusOf(v) + 6
		if v == ends[0] || v == ends[1] || b.distance(p) >= distance {
			continue
		}
		for _, q := range points {
			if p.distance(q) < distance {
				n++
			}
		}
	}
	return n
}

const curveSamples = 24

// An occupancy records where curves run, in a grid of square cells.
type occupancy struct {
	points map[gridCell][]curvePoint
}

type gridCell [2]int16

// A curvePoint is a point on a curve, with the direction there.
type curvePoint struct {
	at, tangent point
	owner       int // the index of an arrow, or edgeOwner
}

const (
	edgeOwner     = -1
	gridCellSize  = 16.0
	maxCellPoints = 20 // further points of a cell add nothing to costs
)

func gridCellOf(p point) gridCell {
	return gridCell{int16(math.Floor(p.x / gridCellSize)), int16(math.Floor(p.y / gridCellSize))}
}

func newOccupancy(l *layout) *occupancy {
	o := &occupancy{points: map[gridCell][]curvePoint{}}
	for _, e := range l.edges {
		o.add(e.curve, edgeOwner)
	}
	return o
}

// add records points of a curve, at most 6 pixels apart so that no cell is missed.
func (o *occupancy) add(curve bezier, owner int) {
	n := int(curve.length()/6) + 1
	for i := range n + 1 {
		t := float64(i) / float64(n)
		p := curve.at(t)
		if cell := gridCellOf(p); len(o.points[cell]) < maxCellPoints {
			o.points[cell] = append(o.points[cell], curvePoint{p, curve.tangent(t), owner})
		}
	}
}

// around calls visit for the points within a distance of p.
func (o *occupancy) around(p point, distance float64, visit func(curvePoint)) {
	low, high := gridCellOf(p.sub(point{distance, distance})), gridCellOf(p.add(point{distance, distance}))
	for x := low[0]; x <= high[0]; x++ {
		for y := low[1]; y <= high[1]; y++ {
			for _, q := range o.points[gridCell{x, y}] {
				if q.at.distance(p) <= distance {
					visit(q)
				}
			}
		}
	}
}

// cost rates how hard a curve would be to follow. Each point that runs along
// another arrow costs 4 and along an edge 1; crossings cost a quarter. The ends do
// not count because all arrows of a node meet there.
func (o *occupancy) cost(curve bezier) float64 {
	sum := 0.0
	for i := 3; i <= curveSamples-3; i++ {
		t := float64(i) / curveSamples
		p, tangent := curve.at(t), curve.tangent(t)
		worst := 0.0
		o.around(p, 6, func(q curvePoint) {
			along := math.Abs(q.tangent.dot(tangent))
			weight := 4.0
			if q.owner == edgeOwner {
				weight = 1
			}
			if along < 0.8 {
				weight *= 0.25
			}
			worst = max(worst, weight)
		})
		sum += worst
	}
	return sum
}
