package draw

import "math"

// A space is what labels must find room in.
type space struct {
	plan    *plan
	clutter *clutter
	labels  []label
	taken   []box // by the labels
}

func newSpace(l *plan, ways []curve) *space {
	s := &space{plan: l, clutter: newClutter(l)}
	for i, way := range ways {
		s.clutter.add(way, i)
	}
	return s
}

// outer tells on which side a curve bulges: 1 for the left of who follows it.
func outer(way curve) float64 {
	if chord := way[0].towards(way[3]).left(); way.at(0.5).minus(way[0]).dot(chord) < -0.5 {
		return -1
	}
	return 1
}

// place puts a label beside a curve: at its middle and on the given side, or
// else where the least is in the way.
func (s *space) place(l label, way curve, first, away float64) {
	size := l.box().size()
	best, least := way[0], math.Inf(1)
	for k, t := range []float64{0.5, 0.43, 0.57, 0.36, 0.64, 0.3, 0.7, 0.24, 0.76, 0.18, 0.82} {
		for side, sign := range []float64{first, -first, 0} {
			normal := way.heading(t).left().times(sign)
			// As far as the box reaches in that direction.
			reach := math.Abs(normal.x)*size.x/2 + math.Abs(normal.y)*size.y/2
			at := way.at(t).plus(normal.times(away + reach - 8))
			if cost := 0.8*float64(k) + 2.5*float64(side) + s.cost(around(at, size.x, size.y)); cost < least-1e-6 {
				best, least = at, cost
			}
		}
	}
	s.put(l, best)
}

func (s *space) put(l label, at point) {
	l.at = at
	s.labels = append(s.labels, l)
	s.taken = append(s.taken, l.box())
}

// placeNear puts a label beside a node.
func (s *space) placeNear(l label, at point, radius float64) {
	size := l.box().size()
	half := size.times(0.5)
	best, least := at, math.Inf(1)
	for k, way := range []point{{1, 1}, {-1, -1}, {1, -1}, {-1, 1}, {0, 1}, {0, -1}, {1, 0}, {-1, 0}} {
		for far := range 3 {
			// Beside a corner of the circle, or before one of its four ends.
			off := point{way.x * (radius + half.x + 2), way.y * (radius + half.y + 2)}
			if way.x != 0 && way.y != 0 {
				off = point{way.x * (radius*0.66 + half.x), way.y * (radius*0.92 + half.y)}
			}
			p := at.plus(off).plus(way.times(5 * float64(far)))
			if cost := 0.7*float64(k) + 3*float64(far) + s.cost(around(p, size.x, size.y)); cost < least-1e-6 {
				best, least = p, cost
			}
		}
	}
	s.put(l, best)
}

// cost says how much is in a label's way: nodes and labels above all, arrows,
// then wires.
func (s *space) cost(b box) float64 {
	sum := 0.0
	for v, p := range s.plan.at {
		if b.distance(p) < s.plan.size(v)+1.5 {
			sum += 100
		}
	}
	for _, other := range s.taken {
		if b.overlaps(other) {
			sum += 100
		}
	}
	wires, arrows := 0.0, 0.0
	low, high := squareOf(b.min), squareOf(b.max)
	for x := low[0]; x <= high[0]; x++ {
		for y := low[1]; y <= high[1]; y++ {
			for _, m := range s.clutter.marks[square{x, y}] {
				switch {
				case b.distance(m.at) > 0:
				case m.owner == wired:
					wires++
				default:
					arrows++
				}
			}
		}
	}
	return sum + 1.2*wires + 3*arrows
}
