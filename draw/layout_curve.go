package draw

import (
	"fmt"
	"math"
)

// A point is a place in a figure, in pixels; y grows downwards.
type point struct{ x, y float64 }

// The conversions keep compilers from fusing products with sums, so that
// figures have the same bytes on all machines.

func (a point) plus(b point) point  { return point{a.x + b.x, a.y + b.y} }
func (a point) minus(b point) point { return point{a.x - b.x, a.y - b.y} }
func (a point) times(f float64) point {
	return point{float64(a.x * f), float64(a.y * f)}
}
func (a point) dot(b point) float64 { return float64(a.x*b.x) + float64(a.y*b.y) }
func (a point) length() float64     { return math.Sqrt(a.dot(a)) }

func (a point) distance(b point) float64     { return a.minus(b).length() }
func (a point) towards(b point) point        { return b.minus(a).times(1 / max(a.distance(b), 1e-9)) }
func (a point) left() point                  { return point{a.y, -a.x} } // of who goes that way
func (a point) mix(b point, t float64) point { return a.times(1 - t).plus(b.times(t)) }

// A curve is a cubic Bézier curve: its ends, and between them the points that
// it leaves and arrives by.
type curve [4]point

// straight returns the line between two points.
func straight(a, b point) curve { return curve{a, a.mix(b, 1.0/3), a.mix(b, 2.0/3), b} }

// bowed returns a curve that is so far from the line at its middle, to the left
// of who goes from a to b.
func bowed(a, b point, height float64) curve {
	length := a.distance(b)
	along, aside := a.towards(b).times(min(16+0.12*length, 0.3*length)), a.towards(b).left().times(height*4/3)
	return curve{a, a.plus(along).plus(aside), b.minus(along).plus(aside), b}
}

// arched returns such a curve over or under a row. The longer it is the steeper
// it leaves, so that those that leave one node are soon apart.
func arched(a, b point, height float64) curve {
	length := a.distance(b)
	along, aside := a.towards(b).times(min(50, 0.3*length)), a.towards(b).left().times(height*4/3)
	return curve{a, a.plus(along).plus(aside), b.minus(along).plus(aside), b}
}

// at returns the point at t, from 0 to 1.
func (c curve) at(t float64) point {
	_, _, p := c.divide(t)
	return p
}

// divide cuts c at t.
func (c curve) divide(t float64) (before, after curve, p point) {
	ab, bc, cd := c[0].mix(c[1], t), c[1].mix(c[2], t), c[2].mix(c[3], t)
	abc, bcd := ab.mix(bc, t), bc.mix(cd, t)
	p = abc.mix(bcd, t)
	return curve{c[0], ab, abc, p}, curve{p, bcd, cd, c[3]}, p
}

// heading returns the direction at t, of length 1.
func (c curve) heading(t float64) point {
	return c.at(max(t-0.01, 0)).towards(c.at(min(t+0.01, 1)))
}

// reverse returns c from its end to its start.
func (c curve) reverse() curve { return curve{c[3], c[2], c[1], c[0]} }

// trim cuts off what is nearer to c's ends than that.
func (c curve) trim(start, end float64) curve {
	_, c, _ = c.divide(c.leaves(start))
	back := c.reverse()
	_, back, _ = back.divide(back.leaves(end))
	return back.reverse()
}

// leaves returns where c is so far from its start, at most in its middle.
func (c curve) leaves(distance float64) float64 {
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

// length is measured along 16 chords.
func (c curve) length() float64 {
	sum := 0.0
	for i := range 16 {
		sum += c.at(float64(i) / 16).distance(c.at(float64(i+1) / 16))
	}
	return sum
}

// beside returns c pushed to the left of who follows it.
func (c curve) beside(distance float64) curve {
	a, b := c[0].towards(c[1]).left(), c[2].towards(c[3]).left()
	return curve{c[0].plus(a.times(distance)), c[1].plus(a.times(distance)), c[2].plus(b.times(distance)), c[3].plus(b.times(distance))}
}

// path returns the d of an SVG path.
func (c curve) path() string {
	aside := c[0].towards(c[3]).left()
	if max(math.Abs(c[1].minus(c[0]).dot(aside)), math.Abs(c[2].minus(c[0]).dot(aside))) < 0.05 {
		return fmt.Sprintf("M%s L%s", c[0], c[3])
	}
	return fmt.Sprintf("M%s C%s %s %s", c[0], c[1], c[2], c[3])
}

// head returns the d of the arrowhead at the end of c, and c without what the
// head covers.
func (c curve) head() (head string, shaft curve) {
	const long, wide = 11, 4.2
	shaft = c.trim(0, long-2)
	tip := c[3]
	back := shaft[3].towards(tip)
	base := tip.minus(back.times(long))
	side := back.left().times(wide)
	notch := tip.minus(back.times(long - 2.5))
	return fmt.Sprintf("M%s L%s L%s L%s Z", tip, base.plus(side), notch, base.minus(side)), shaft
}

func (a point) String() string { return number(a.x) + "," + number(a.y) }

// A box is a rectangle.
type box struct{ min, max point }

// around returns the box of that width and height around a point.
func around(p point, width, height float64) box {
	half := point{width / 2, height / 2}
	return box{p.minus(half), p.plus(half)}
}

// size returns the width and height.
func (b box) size() point { return b.max.minus(b.min) }

// join returns the least box that holds both.
func (b box) join(c box) box {
	return box{point{min(b.min.x, c.min.x), min(b.min.y, c.min.y)}, point{max(b.max.x, c.max.x), max(b.max.y, c.max.y)}}
}

// overlaps tells whether the boxes have more than their edges in common.
func (b box) overlaps(c box) bool {
	return b.min.x < c.max.x && c.min.x < b.max.x && b.min.y < c.max.y && c.min.y < b.max.y
}

// distance is how far a point is from the box; 0 within it.
func (b box) distance(p point) float64 {
	return p.distance(point{min(max(p.x, b.min.x), b.max.x), min(max(p.y, b.min.y), b.max.y)})
}

// bounds returns the box of the points that c passes.
func (c curve) bounds() box {
	b := box{c[0], c[0]}
	for i := range 17 {
		p := c.at(float64(i) / 16)
		b = b.join(box{p, p})
	}
	return b
}
