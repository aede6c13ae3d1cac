package main

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strconv"
	"strings"
)

const (
	ink   = "#1f2430"
	faint = "#5b6470"
	// dutyLength is how many characters of a duty fit into a line of a box.
	dutyLength = 21
)

// fills are the colors of the kinds of packages, in the order of the table.
var fills = []string{"#fdf0cf", "#efe3f5", "#dcebfa", "#dcf1e6"}

// svg returns the picture.
func (d *drawing) svg() string {
	var b strings.Builder
	width, height := d.size()
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="title desc" width="%s" height="%s" viewBox="0 0 %s %s">`+"\n",
		number(width), number(height), number(width), number(height))
	b.WriteString("<title id=\"title\">The packages of chorale</title>\n")
	fmt.Fprintf(&b, "<desc id=\"desc\">%s</desc>\n", html.EscapeString(d.words()))
	fmt.Fprintf(&b, "<style>text{font-family:system-ui,\"Helvetica Neue\",Arial,\"DejaVu Sans\",sans-serif;fill:%s}</style>\n", ink)
	b.WriteString("<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n")
	d.legend(&b)
	for _, a := range d.arrows {
		a.write(&b)
	}
	for _, x := range d.boxes {
		x.write(&b, d.fill(x.kind))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func (d *drawing) size() (width, height float64) {
	for _, b := range d.boxes {
		width, height = max(width, b.right()+marginX), max(height, b.bottom()+marginX)
	}
	return width, height
}

func (d *drawing) fill(kind string) string {
	return fills[slices.Index(d.kinds, kind)%len(fills)]
}

// words says what the picture shows.
func (d *drawing) words() string {
	var all []string
	for _, b := range d.boxes {
		var below []string
		for _, a := range d.arrows {
			if a.from == b {
				below = append(below, a.to.path)
			}
		}
		if len(below) > 0 {
			all = append(all, b.path+" imports "+strings.Join(below, ", ")+".")
		}
	}
	return strings.Join(all, " ") + " Imports that follow from others are left out."
}

func (d *drawing) legend(b *strings.Builder) {
	text(b, marginX, 30, 18, ink, "font-weight=\"600\"", "The packages of chorale")
	x := marginX
	for _, kind := range d.kinds {
		fmt.Fprintf(b, `<rect x="%s" y="46" width="22" height="14" rx="3" fill="%s" stroke="#8a93a0"/>`+"\n", number(x), d.fill(kind))
		text(b, x+28, 58, 13, faint, "", kind)
		x += 48 + 6.9*float64(len(kind))
	}
	text(b, marginX, 80, 13, faint, "", "An arrow leads from a package to one that it imports. Arrows that follow from others are left out.")
}

func (x *box) write(b *strings.Builder, fill string) {
	fmt.Fprintf(b, `<rect x="%s" y="%s" width="%s" height="%s" rx="6" fill="%s" stroke="#5b6470" stroke-width="1.2"/>`+"\n",
		number(x.left()), number(x.y), number(boxWidth), number(boxHeight), fill)
	above, own := x.name()
	y := x.y + 24
	if above != "" {
		text(b, x.x, x.y+14, 10.5, faint, middle, above)
		y = x.y + 30
	}
	text(b, x.x, y, 15, ink, middle+` font-weight="600"`, own)
	for i, line := range lines(x.duty, dutyLength) {
		text(b, x.x, y+16+13*float64(i), 11, ink, middle, line)
	}
}

const middle = `text-anchor="middle"`

func (a *arrow) write(b *strings.Builder) {
	const head, half = 8.0, 3.6
	knots := a.knots()
	tip := &knots[len(knots)-1]
	fmt.Fprintf(b, "<g><title>%s imports %s</title>\n", a.from.path, a.to.path)
	fmt.Fprintf(b, `<path d="M%s,%s L%s,%s L%s,%s Z" fill="%s"/>`+"\n", number(tip.x), number(tip.y),
		number(tip.x-half), number(tip.y-head), number(tip.x+half), number(tip.y-head), faint)
	tip.y -= head - 1
	fmt.Fprintf(b, `<path d="M%s,%s`, number(knots[0].x), number(knots[0].y))
	for i, p := range knots[1:] {
		q := knots[i]
		k := (p.y - q.y) / 2
		if p.x == q.x {
			fmt.Fprintf(b, " L%s,%s", number(p.x), number(p.y))
		} else {
			fmt.Fprintf(b, " C%s,%s %s,%s %s,%s", number(q.x), number(q.y+k), number(p.x), number(p.y-k), number(p.x), number(p.y))
		}
	}
	fmt.Fprintf(b, `" fill="none" stroke="%s" stroke-width="1.5"/>`+"\n</g>\n", faint)
}

// text writes words whose baseline begins at x, y.
func text(b *strings.Builder, x, y, size float64, color, attributes, words string) {
	if attributes != "" {
		attributes = " " + attributes
	}
	fmt.Fprintf(b, `<text x="%s" y="%s" style="font-size:%spx;fill:%s"%s>%s</text>`+"\n",
		number(x), number(y), number(size), color, attributes, html.EscapeString(words))
}

// number writes a length in at most two decimals, so that the picture does not
// depend on how a machine rounds.
func number(v float64) string {
	return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64)
}
