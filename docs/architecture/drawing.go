package main

import (
	"cmp"
	"math"
	"path"
	"slices"
	"strings"
)

// Lengths of the picture, in pixels.
const (
	boxWidth, boxHeight = 144.0, 68.0
	colPitch, rowPitch  = 154.0, 116.0
	marginX, marginTop  = 16.0, 96.0
	portPitch           = 18.0 // between arrows at one box
	lanePitch           = 9.0  // between arrows that pass a row side by side
	clearance           = 4.0  // between an arrow and a box that it passes
)

// A box is a package in the picture. Its place is the middle of its upper edge.
type box struct {
	row
	x, y float64
}

func (b box) left() float64   { return b.x - boxWidth/2 }
func (b box) right() float64  { return b.x + boxWidth/2 }
func (b box) bottom() float64 { return b.y + boxHeight }

// A point is a place in the picture.
type point struct{ x, y float64 }

// An arrow leads from a box to one that it may import. Between its ends it passes
// the rows between them vertically, each at one point and boxHeight further down.
type arrow struct {
	from, to *box
	start    point
	via      []point
	end      point
}

// first and last return the points that an arrow's ends turn to.
func (a *arrow) first() point { return append(slices.Clone(a.via), a.end)[0] }
func (a *arrow) last() point {
	if n := len(a.via); n > 0 {
		return a.via[n-1]
	}
	return a.start
}

// A drawing is the picture of the packages.
type drawing struct {
	boxes  []*box
	arrows []*arrow
	kinds  []string // in the order of the table
}

func newDrawing(rows []row) *drawing {
	d := &drawing{}
	byPath := make(map[string]*box)
	for _, r := range rows {
		if !r.drawn {
			continue
		}
		b := &box{row: r, x: marginX + boxWidth/2 + (r.col-1)*colPitch, y: marginTop + (r.row-1)*rowPitch}
		byPath[r.path] = b
		d.boxes = append(d.boxes, b)
		if !slices.Contains(d.kinds, r.kind) {
			d.kinds = append(d.kinds, r.kind)
		}
	}
	kept := arrows(rows)
	for _, b := range d.boxes {
		for _, path := range kept[b.path] {
			to := byPath[path]
			d.arrows = append(d.arrows, &arrow{from: b, to: to, start: point{b.x, b.bottom()}, end: point{to.x, to.y}})
		}
	}
	d.route()
	d.attach()
	return d
}

// route takes each arrow past the rows between its ends. Arrows that pass through
// one gap lie side by side, in the order in which they come to it.
func (d *drawing) route() {
	type lane struct {
		before float64 // x at the row above
		at     *point
	}
	sharing := make(map[point][]lane)
	for _, a := range d.arrows {
		for _, y := range d.rowsBetween(a) {
			a.via = append(a.via, point{d.gap(y, a.start, a.end), y})
		}
		before := a.start.x
		for i, gap := range a.via {
			sharing[gap] = append(sharing[gap], lane{before, &a.via[i]})
			before = gap.x
		}
	}
	for _, lanes := range sharing {
		slices.SortStableFunc(lanes, func(a, b lane) int { return cmp.Compare(a.before, b.before) })
		for i, l := range lanes {
			l.at.x += (float64(i) - float64(len(lanes)-1)/2) * lanePitch
		}
	}
}

// rowsBetween returns the upper edges of the rows that an arrow passes.
func (d *drawing) rowsBetween(a *arrow) (ys []float64) {
	for _, b := range d.boxes {
		if a.from.y < b.y && b.y < a.to.y && !slices.Contains(ys, b.y) {
			ys = append(ys, b.y)
		}
	}
	slices.Sort(ys)
	return ys
}

// gap returns the x at which an arrow passes a row. It is near to the straight line,
// and if possible below the arrow's start or above its end: between boxes otherwise.
func (d *drawing) gap(y float64, start, end point) float64 {
	straight := start.x + (end.x-start.x)*(y-start.y)/(end.y-start.y)
	best, detour := straight, math.Inf(1)
	try := func(x, weight float64) {
		free := !slices.ContainsFunc(d.boxes, func(b *box) bool {
			return b.y == y && b.left()-clearance < x && x < b.right()+clearance
		})
		if way := weight * math.Abs(x-straight); free && way < detour {
			best, detour = x, way
		}
	}
	try(end.x, 0.2)
	try(start.x, 0.5)
	for _, b := range d.boxes {
		if b.y == y {
			try(b.left()-(colPitch-boxWidth)/2, 1)
			try(b.right()+(colPitch-boxWidth)/2, 1)
		}
	}
	return best
}

// attach spreads the ends of arrows along the edges of their boxes, in the order
// of the places that they come from.
func (d *drawing) attach() {
	for _, b := range d.boxes {
		var out, in []*arrow
		for _, a := range d.arrows {
			if a.from == b {
				out = append(out, a)
			}
			if a.to == b {
				in = append(in, a)
			}
		}
		slices.SortStableFunc(out, func(a, b *arrow) int { return cmp.Compare(a.first().x, b.first().x) })
		slices.SortStableFunc(in, func(a, b *arrow) int { return cmp.Compare(a.last().x, b.last().x) })
		for i, a := range out {
			a.start.x = b.x + (float64(i)-float64(len(out)-1)/2)*portPitch
		}
		for i, a := range in {
			a.end.x = b.x + (float64(i)-float64(len(in)-1)/2)*portPitch
		}
	}
}

// knots returns the points that an arrow passes, from its start to its end. Two
// points of one x are joined by a line, others by a curve that leaves and arrives
// vertically.
func (a *arrow) knots() []point {
	all := []point{a.start}
	for _, v := range a.via {
		all = append(all, v, point{v.x, v.y + boxHeight})
	}
	return append(all, a.end)
}

// name returns the two parts of a package's name that the picture shows: the
// directories above it, and its own.
func (b box) name() (above, own string) {
	p := strings.TrimSuffix(b.path, "/...")
	if dir := path.Dir(p); dir != "." {
		above = dir + "/"
	}
	return above, path.Base(p)
}

// lines breaks a duty into lines of at most so many characters.
func lines(text string, most int) (all []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case len(line)+1+len(word) > most:
			all = append(all, line)
			line = word
		default:
			line += " " + word
		}
	}
	return append(all, line)
}
