package draw

import "math"

// A space is what labels must find room in.
type space struct {
	plan    *plan
	ways    []curve
	clutter *clutter
	labels  []label
}

func newSpace(l *plan, ways []curve) *space {
	s := &space{plan: l, ways: ways, clutter: newClutter(l)}
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
	size := l.box()
	best, least := l, math.Inf(1)
	for k, t := range []float64{0.5, 0.43, 0.57, 0.36, 0.64, 0.3, 0.7, 0.24, 0.76, 0.18, 0.82} {
		for side, sign := range []float64{first, -first, 0} {
			normal := way.heading(t).left().times(sign)
			// As far as the box reaches in that direction.
			reach := math.Abs(normal.x)*(size.max.x-size.min.x)/2 + math.Abs(normal.y)*(size.max.y-size.min.y)/2
			l.at = way.at(t).plus(normal.times(away + reach - 8))
			cost := 0.8*float64(k) + 2.5*float64(side) + s.cost(l)
			if cost < least-1e-6 {
				best, least = l, cost
			}
		}
	}
	s.labels = append(s.labels, best)
}

// placeNear puts a label beside a node.
func (s *space) placeNear(l label, at point, radius float64) {
	size := l.box()
	half := point{(size.max.x - size.min.x) / 2, (size.max.y - size.min.y) / 2}
	best, least := l, math.Inf(1)
	for k, way := range []point{{0.9, 1}, {-0.9, -1}, {0.9, -1}, {-0.9, 1}, {0, 1}, {0, -1}, {1, 0}, {-1, 0}} {
		for far := range 3 {
			gap := radius*math.Min(1, 0.72+0.28*math.Abs(math.Abs(way.x)-math.Abs(way.y))*2) + 2 + 7*float64(far)
			l.at = at.plus(point{way.x * (gap + half.x), way.y * (gap + half.y)})
			if way.x != 0 && way.y != 0 {
				l.at = at.plus(point{sign(way.x) * (radius*0.55 + half.x + 4*float64(far)), way.y * (radius*0.8 + half.y + 4*float64(far))})
			}
			cost := 0.7*float64(k) + 3*float64(far) + s.cost(l)
			if cost < least-1e-6 {
				best, least = l, cost
			}
		}
	}
	s.labels = append(s.labels, best)
}

func sign(x float64) float64 { return math.Copysign(1, x) }

// cost says how much is in a label's way: nodes and labels above all, arrows,
// then wires.
func (s *space) cost(l label) float64 {
	b := l.box()
	sum := 0.0
	for v, p := range s.plan.at {
		if b.distance(p) < s.plan.size(v)+1.5 {
			sum += 100
		}
	}
	for _, other := range s.labels {
		if b.overlaps(other.box()) {
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
