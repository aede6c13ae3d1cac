package draw

import (
	"fmt"
	"math"
)

// A point is a position or a vector in a figure, in pixels; y grows downwards.
type point struct{ x, y float64 }

// The conversions prevent fused multiply-add, so that figures have the same bytes
// on all machines.

func (a point) add(b point) point { return point{a.x + b.x, a.y + b.y} }
func (a point) sub(b point) point { return point{a.x - b.x, a.y - b.y} }
func (a point) scale(f float64) point {
	return point{float64(a.x * f), float64(a.y * f)}
}
func (a point) dot(b point) float64 { return float64(a.x*b.x) + float64(a.y*b.y) }
func (a point) length() float64     { return math.Sqrt(a.dot(a)) }

func (a point) distance(b point) float64      { return a.sub(b).length() }
func (a point) directionTo(b point) point     { return b.sub(a).scale(1 / max(a.distance(b), 1e-9)) }
func (a point) normal() point                 { return point{a.y, -a.x} } // to the left of the vector
func (a point) lerp(b point, t float64) point { return a.scale(1 - t).add(b.scale(t)) }

// A bezier is a cubic Bézier curve: start, two control points, end.
type bezier [4]point

// straight returns the line between two points.
func straight(a, b point) bezier { return bezier{a, a.lerp(b, 1.0/3), a.lerp(b, 2.0/3), b} }

// bow returns a curve whose middle is at the given height above the line from a
// to b, to the left in that direction.
func bow(a, b point, height float64) bezier {
	length := a.distance(b)
	along, sideways := a.directionTo(b).scale(min(16+0.12*length, 0.3*length)), a.directionTo(b).normal().scale(height*4/3)
	return bezier{a, a.add(along).add(sideways), b.sub(along).add(sideways), b}
}

// arch returns a bow for arcs above or below a row. Longer arcs start more
// steeply, so that the arcs of one node separate soon.
func arch(a, b point, height float64) bezier {
	length := a.distance(b)
	along, sideways := a.directionTo(b).scale(min(50, 0.3*length)), a.directionTo(b).normal().scale(height*4/3)
	return bezier{a, a.add(along).add(sideways), b.sub(along).add(sideways), b}
}

// at returns the point at t, from 0 to 1.
func (c bezier) at(t float64) point {
	_, _, p := c.split(t)
	return p
}

// split cuts c at t, and returns the point there.
func (c bezier) split(t float64) (before, after bezier, at point) {
	ab, bc, cd := c[0].lerp(c[1], t), c[1].lerp(c[2], t), c[2].lerp(c[3], t)
	abc, bcd := ab.lerp(bc, t), bc.lerp(cd, t)
	at = abc.lerp(bcd, t)
	return bezier{c[0], ab, abc, at}, bezier{at, bcd, cd, c[3]}, at
}

// tangent returns the unit vector of the direction at t.
func (c bezier) tangent(t float64) point {
	return c.at(max(t-0.01, 0)).directionTo(c.at(min(t+0.01, 1)))
}

// reverse returns c from its end to its start.
func (c bezier) reverse() bezier { return bezier{c[3], c[2], c[1], c[0]} }

// trim removes the parts of c within the given distances of its start and end.
func (c bezier) trim(start, end float64) bezier {
	_, c, _ = c.split(c.paramAtDistance(start))
	back := c.reverse()
	_, back, _ = back.split(back.paramAtDistance(end))
	return back.reverse()
}

// paramAtDistance returns the t at which c is that far from its start, at most 0.5.
func (c bezier) paramAtDistance(distance float64) float64 {
	low, high := 0.0, 0.5
	for range 30 {
		mid := (low + high) / 2
		if c.at(mid).distance(c[0]) < distance {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// length approximates the length of c by 16 chords.
func (c bezier) length() float64 {
	sum := 0.0
	for i := range 16 {
		sum += c.at(float64(i) / 16).distance(c.at(float64(i+1) / 16))
	}
	return sum
}

// gap returns how far c is from a curve with the same ends, in the middle third.
func (c bezier) gap(o bezier) float64 {
	least := math.Inf(1)
	for _, t := range [...]float64{1.0 / 3, 0.5, 2.0 / 3} {
		least = min(least, c.at(t).distance(o.at(t)))
	}
	return least
}

// offset returns c moved to its left by a distance. The control points move between the
// left of the curve and that of the line from end to end, so that also the top of a steep
// curve moves.
func (c bezier) offset(distance float64) bezier {
	a, b := c[0].directionTo(c[1]).normal(), c[2].directionTo(c[3]).normal()
	across := c[0].directionTo(c[3]).normal()
	first, second := point{}.directionTo(a.add(across)), point{}.directionTo(b.add(across))
	return bezier{c[0].add(a.scale(distance)), c[1].add(first.scale(distance)), c[2].add(second.scale(distance)), c[3].add(b.scale(distance))}
}

// path returns the d attribute of an SVG path.
func (c bezier) path() string {
	sideways := c[0].directionTo(c[3]).normal()
	if max(math.Abs(c[1].sub(c[0]).dot(sideways)), math.Abs(c[2].sub(c[0]).dot(sideways))) < 0.05 {
		return fmt.Sprintf("M%s L%s", c[0], c[3])
	}
	return fmt.Sprintf("M%s C%s %s %s", c[0], c[1], c[2], c[3])
}

// arrowhead returns the d attribute of an arrowhead at the end of c, and the part
// of c that the head does not cover.
func (c bezier) arrowhead() (head string, shaft bezier) {
	const long, wide = 11, 4.2
	shaft = c.trim(0, long-2)
	tip := c[3]
	back := shaft[3].directionTo(tip)
	base := tip.sub(back.scale(long))
	side := back.normal().scale(wide)
	notch := tip.sub(back.scale(long - 2.5))
	return fmt.Sprintf("M%s L%s L%s L%s Z", tip, base.add(side), notch, base.sub(side)), shaft
}

func (a point) String() string { return number(a.x) + "," + number(a.y) }

// A rect is a rectangle with sides parallel to the axes.
type rect struct{ min, max point }

// rectAround returns the rectangle of a width and height with center p.
func rectAround(p point, width, height float64) rect {
	half := point{width / 2, height / 2}
	return rect{p.sub(half), p.add(half)}
}

// size returns the width and height.
func (b rect) size() point { return b.max.sub(b.min) }

// union returns the smallest rectangle that contains b and c.
func (b rect) union(c rect) rect {
	return rect{point{min(b.min.x, c.min.x), min(b.min.y, c.min.y)}, point{max(b.max.x, c.max.x), max(b.max.y, c.max.y)}}
}

// overlaps reports whether the interiors of b and c intersect.
func (b rect) overlaps(c rect) bool {
	return b.min.x < c.max.x && c.min.x < b.max.x && b.min.y < c.max.y && c.min.y < b.max.y
}

// distance returns the distance of a point from b; 0 inside.
func (b rect) distance(p point) float64 {
	return p.distance(point{min(max(p.x, b.min.x), b.max.x), min(max(p.y, b.min.y), b.max.y)})
}

// bounds returns the bounding rectangle of 17 points of c.
func (c bezier) bounds() rect {
	b := rect{c[0], c[0]}
	for i := range 17 {
		p := c.at(float64(i) / 16)
		b = b.union(rect{p, p})
	}
	return b
}
