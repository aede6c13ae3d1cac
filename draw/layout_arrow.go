package draw

import "math"

// arrows returns the ways of arrows between pairs of processors, from edge to
// edge of their circles. They keep clear of other processors and, as far as
// they can, of each other and of the wires. The same pairs in the same order
// run the same ways.
func (l *plan) arrows(pairs [][2]int) []curve {
	room := newClutter(l)
	ways := make([]curve, len(pairs))
	for i, pair := range pairs {
		best, least := curve{}, math.Inf(1)
		w, _ := l.between(pair[0], pair[1])
		for k, way := range l.ways(pair[0], pair[1]) {
			cost := 2*float64(k) + room.cost(way)
			if w != nil {
				cost = float64(k) // neighbours have a place of their own
			}
			cost += 40 * float64(l.runsOver(way, pair))
			if cost < least-1e-6 {
				best, least = way, cost
			}
		}
		room.add(best, i)
		ways[i] = best.trim(l.radius+1.5, l.radius+3)
	}
	return ways
}

// ways lists how an arrow may run from centre to centre, the best first.
func (l *plan) ways(from, to int) []curve {
	a, b := l.at[from], l.at[to]
	length := a.distance(b)
	w, turned := l.between(from, to)
	switch {
	case w != nil && w.bent:
		along := w.curve
		if turned {
			along = along.reverse()
		}
		push := along.beside(18)
		push[0], push[3] = a, b
		return []curve{push}
	case w != nil && l.manner == beside:
		// There and back pass on either side, unless a node is in the way.
		h := 8 + 0.015*length
		return []curve{bowed(a, b, h), bowed(a, b, -h), bowed(a, b, 2*h), bowed(a, b, -2*h), bowed(a, b, 4*h), bowed(a, b, -4*h)}
	case l.manner == overhead:
		return []curve{arched(a, b, l.arcHeight(length))}
	case l.manner == beneath && b.x > a.x:
		return []curve{arched(a, b, -l.arcHeight(length))}
	case l.manner == beneath:
		return []curve{arched(a, b, 12+1.12*l.arcHeight(length))} // below the one that goes there
	}
	var ways []curve
	heights := []float64{0.2 * length, 0.27 * length, 0.14 * length, 0.36 * length, 0.09 * length, 0.5 * length}
	for _, h := range heights {
		ways = append(ways, bowed(a, b, h), bowed(a, b, -h))
	}
	return ways
}

// arcHeight is how high an arc over a row is: low to the next node, and then
// less and less steeply growing, so that long rows do not make high figures.
func (l *plan) arcHeight(length float64) float64 {
	if length < 1.5*l.pitch {
		return 15
	}
	return 45 * math.Pow(length/(2*rowPitch), 0.83)
}

// between returns the wire between two vertices, and whether it leads from the
// second to the first; or nil.
func (l *plan) between(a, b int) (w *wire, turned bool) {
	for i := range l.wires {
		switch w := &l.wires[i]; {
		case w.a == a && w.b == b:
			return w, false
		case w.a == b && w.b == a:
			return w, true
		}
	}
	return nil, false
}

// runsOver counts the points of a curve, of 25, that lie on vertices other than
// its ends, or too near.
func (l *plan) runsOver(c curve, ends [2]int) (n int) {
	var points [samples + 1]point
	b := box{c[0], c[0]}
	for i := range points {
		points[i] = c.at(float64(i) / samples)
		b = b.join(box{points[i], points[i]})
	}
	for v, p := range l.at {
		room := l.size(v) + 6
		if v == ends[0] || v == ends[1] || b.distance(p) >= room {
			continue
		}
		for _, q := range points {
			if p.distance(q) < room {
				n++
			}
		}
	}
	return n
}

const samples = 24

// A clutter knows where curves already run, by squares of the figure.
type clutter struct {
	marks map[square][]mark
}

type square [2]int16

// A mark is a point of a curve.
type mark struct {
	at, heading point
	owner       int // the number of an arrow, or wired
}

const (
	wired      = -1
	squareSize = 16.0
	crowded    = 20 // marks that say all there is to say of a square
)

func squareOf(p point) square {
	return square{int16(math.Floor(p.x / squareSize)), int16(math.Floor(p.y / squareSize))}
}

func newClutter(l *plan) *clutter {
	c := &clutter{marks: map[square][]mark{}}
	for _, w := range l.wires {
		c.add(w.curve, wired)
	}
	return c
}

// add marks a curve, densely enough that no square is passed over.
func (c *clutter) add(way curve, owner int) {
	n := int(way.length()/6) + 1
	for i := range n + 1 {
		t := float64(i) / float64(n)
		p := way.at(t)
		if s := squareOf(p); len(c.marks[s]) < crowded {
			c.marks[s] = append(c.marks[s], mark{p, way.heading(t), owner})
		}
	}
}

// around calls see with the marks that are at most so far from p.
func (c *clutter) around(p point, distance float64, see func(mark)) {
	low, high := squareOf(p.minus(point{distance, distance})), squareOf(p.plus(point{distance, distance}))
	for x := low[0]; x <= high[0]; x++ {
		for y := low[1]; y <= high[1]; y++ {
			for _, m := range c.marks[square{x, y}] {
				if m.at.distance(p) <= distance {
					see(m)
				}
			}
		}
	}
}

// cost says how hard a curve would be to follow: for each of its points that
// runs along something else, more for another arrow than for a wire. To cross
// costs little. Its ends do not count, since there all arrows of a node meet.
func (c *clutter) cost(way curve) float64 {
	sum := 0.0
	for i := 3; i <= samples-3; i++ {
		t := float64(i) / samples
		p, heading := way.at(t), way.heading(t)
		worst := 0.0
		c.around(p, 6, func(m mark) {
			along := math.Abs(m.heading.dot(heading))
			weight := 4.0
			if m.owner == wired {
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
