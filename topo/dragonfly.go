package topo

import "fmt"

// A Dragonfly has groups of a routers. A router has p processors, a link to
// every other router of its group and h links to other groups. Every two
// groups share one link, so there are g = a·h+1 groups and a·p·g processors.
// Kim, Dally, Scott and Abts, Technology-Driven, Highly-Scalable Dragonfly
// Topology, ISCA 2008.
//
// Link j of router r in a group leads to the group that is r·h+j+1 further,
// counted around. The route is the paper's minimal one: to the router that is
// linked to the destination's group, across, and to the destination's router,
// at most 5 links. A path over a third group may have fewer links; no route
// takes it, since links between groups are the long ones.
//
// Routers are the switches, named r2.0: router 0 of group 2.
type Dragonfly struct {
	a, p, h int
	g       int // groups
	n       int // processors
}

// NewDragonfly returns the dragonfly with a routers in a group, p processors
// at a router and h links from a router to other groups, each 1 or more.
func NewDragonfly(a, p, h int) (*Dragonfly, error) {
	d := &Dragonfly{a: a, p: p, h: h}
	if min(a, p, h) < 1 {
		return nil, fmt.Errorf("%v: want 1 or more of each", d)
	}
	fa, fh := float64(a), float64(h)
	if err := checkLinks(d.String(), fa*(fa*fh+1)*(2*float64(p)+fa-1+fh)); err != nil {
		return nil, err
	}
	d.g = a*h + 1
	d.n = a * p * d.g
	return d, nil
}

// String returns the text that Parse reads, as in "dragonfly:4,2,2".
func (d *Dragonfly) String() string { return fmt.Sprintf("dragonfly:%d,%d,%d", d.a, d.p, d.h) }

// Processors returns a·p·g.
func (d *Dragonfly) Processors() int { return d.n }

// Switches returns the number of routers, a·g.
func (d *Dragonfly) Switches() int { return d.g * d.a }

// LinkCount returns a·p·g + g·a(a−1)/2 + g(g−1)/2.
func (d *Dragonfly) LinkCount() int { return d.n + d.g*d.a*(d.a-1+d.h)/2 }

// Ports returns 1.
func (d *Dragonfly) Ports() int { return 1 }

// Diameter returns 5, or 3 if a group has one router.
func (d *Dragonfly) Diameter() int {
	if d.a == 1 {
		return 3 // no group has links inside
	}
	return 5
}

// Bisection returns the width of the narrowest straight cut. It separates the
// groups. If their number is odd, it separates the routers of the middle group,
// together with the groups that they lead to; if their number is odd too, the
// processors of the middle router. Where processors have fewer links than that
// in all, it cuts off each processor of one half.
func (d *Dragonfly) Bisection() (int, bool) {
	half := d.g / 2
	width := half * half
	if d.g%2 == 1 {
		width += d.a / 2 * ((d.a + 1) / 2)
		if d.a%2 == 1 {
			width += d.h/2 + d.p/2
		}
	}
	return min(width, d.n/2), true
}

// Directed links: those of the processors, upwards first; then those inside
// the groups, by their first router and then by the second; then those between
// groups, by group and how far the other is.

// AppendRoute appends the minimal route over the link between the two groups.
func (d *Dragonfly) AppendRoute(dst []int32, from, to int) []int32 {
	if from == to {
		return dst
	}
	at, last := from/d.p, to/d.p // routers, counted over all groups
	dst = append(dst, int32(2*from))
	if here, there := at/d.a, last/d.a; here != there {
		far := there - here - 1
		if far < 0 {
			far += d.g
		}
		dst = d.appendInside(dst, at, here*d.a+far/d.h)
		dst = append(dst, int32(d.between()+here*(d.g-1)+far))
		at = there*d.a + d.back(far)/d.h
	}
	dst = d.appendInside(dst, at, last)
	return append(dst, int32(2*to+1))
}

// appendInside appends the link from one router to another of the same group.
func (d *Dragonfly) appendInside(dst []int32, from, to int) []int32 {
	if from == to {
		return dst
	}
	other := to % d.a
	if to > from {
		other--
	}
	return append(dst, int32(2*d.n+from*(d.a-1)+other))
}

// between returns the first link between groups.
func (d *Dragonfly) between() int { return 2*d.n + d.g*d.a*(d.a-1) }

// back returns the distance to a group from the group that is far further.
func (d *Dragonfly) back(far int) int { return d.g - 2 - far }

// Ends returns the two vertices that a directed link joins.
func (d *Dragonfly) Ends(link int) (from, to int) {
	switch inside := link - 2*d.n; {
	case inside < 0:
		from, to = link/2, d.n+link/2/d.p
		if link%2 == 1 {
			from, to = to, from
		}
	case link < d.between():
		from, to = inside/(d.a-1), inside%(d.a-1)
		if to >= from%d.a {
			to++
		}
		to += from / d.a * d.a
		from, to = d.n+from, d.n+to
	default:
		here, far := (link-d.between())/(d.g-1), (link-d.between())%(d.g-1)
		there := (here + far + 1) % d.g
		from, to = d.n+here*d.a+far/d.h, d.n+there*d.a+d.back(far)/d.h
	}
	return from, to
}

// Name returns a processor's number, or for a router its group and index, as in
// "r2.0".
func (d *Dragonfly) Name(v int) string {
	if v < d.n {
		return numbered(v)
	}
	return fmt.Sprintf("r%d.%d", (v-d.n)/d.a, (v-d.n)%d.a)
}
