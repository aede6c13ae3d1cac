package draw

import "math"

// A labelPlacer finds positions for labels that cover as little as possible.
type labelPlacer struct {
	layout    *layout
	occupancy *occupancy
	labels    []label
	occupied  []rect // by labels
}

func newLabelPlacer(l *layout, arrows []bezier) *labelPlacer {
	p := &labelPlacer{layout: l, occupancy: newOccupancy(l)}
	for i, curve := range arrows {
		p.occupancy.add(curve, i)
	}
	return p
}

// outerSide returns the side on which a curve bulges: 1 for the left in its
// direction, -1 for the right.
func outerSide(curve bezier) float64 {
	if chord := curve[0].directionTo(curve[3]).normal(); curve.at(0.5).sub(curve[0]).dot(chord) < -0.5 {
		return -1
	}
	return 1
}

// placeOnCurve puts a label at the given distance from a curve. It prefers the
// middle of the curve and the given side: 1 for the left, -1 for the right.
func (p *labelPlacer) placeOnCurve(l label, curve bezier, side, distance float64) {
	size := l.bounds().size()
	best, least := curve[0], math.Inf(1)
	for k, t := range []float64{0.5, 0.43, 0.57, 0.36, 0.64, 0.3, 0.7, 0.24, 0.76, 0.18, 0.82} {
		for try, sign := range []float64{side, -side, 0} {
			normal := curve.tangent(t).normal().scale(sign)
			// How far the label extends in the direction of the normal.
			reach := math.Abs(normal.x)*size.x/2 + math.Abs(normal.y)*size.y/2
			at := curve.at(t).add(normal.scale(distance + reach - 8))
			if cost := 0.8*float64(k) + 2.5*float64(try) + p.cost(rectAround(at, size.x, size.y)); cost < least-1e-6 {
				best, least = at, cost
			}
		}
	}
	p.add(l, best)
}

func (p *labelPlacer) add(l label, at point) {
	l.at = at
	p.labels = append(p.labels, l)
	p.occupied = append(p.occupied, l.bounds())
}

// placeNearNode puts a label beside a node of the given radius.
func (p *labelPlacer) placeNearNode(l label, at point, radius float64) {
	size := l.bounds().size()
	half := size.scale(0.5)
	best, least := at, math.Inf(1)
	for k, direction := range []point{{1, 1}, {-1, -1}, {1, -1}, {-1, 1}, {0, 1}, {0, -1}, {1, 0}, {-1, 0}} {
		for ring := range 3 {
			// On a diagonal, or straight above, below, left or right.
			offset := point{direction.x * (radius + half.x + 2), direction.y * (radius + half.y + 2)}
			if direction.x != 0 && direction.y != 0 {
				offset = point{direction.x * (radius*0.66 + half.x), direction.y * (radius*0.92 + half.y)}
			}
			pos := at.add(offset).add(direction.scale(5 * float64(ring)))
			if cost := 0.7*float64(k) + 3*float64(ring) + p.cost(rectAround(pos, size.x, size.y)); cost < least-1e-6 {
				best, least = pos, cost
			}
		}
	}
	p.add(l, best)
}

// cost rates what a label would cover. Nodes and labels cost most, then arrows,
// then edges.
func (p *labelPlacer) cost(b rect) float64 {
	sum := 0.0
	for v, at := range p.layout.at {
		if b.distance(at) < p.layout.radiusOf(v)+1.5 {
			sum += 100
		}
	}
	for _, other := range p.occupied {
		if b.overlaps(other) {
			sum += 100
		}
	}
	edges, arrows := 0.0, 0.0
	low, high := gridCellOf(b.min), gridCellOf(b.max)
	for x := low[0]; x <= high[0]; x++ {
		for y := low[1]; y <= high[1]; y++ {
			for _, q := range p.occupancy.points[gridCell{x, y}] {
				switch {
				case b.distance(q.at) > 0:
				case q.owner == edgeOwner:
					edges++
				default:
					arrows++
				}
			}
		}
	}
	return sum + 1.2*edges + 3*arrows
}
