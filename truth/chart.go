package main

import (
	"fmt"
	"math"
	"strings"
)

// The measures of the picture, in pixels.
const (
	side   = 250 // of a panel
	margin = 56
	top    = 34
)

// chart draws a panel for each class: the measured time of every cell against the simulated
// one, both logarithmic. On the solid line they are equal; the dashed ones are the aim for nine
// in ten cells.
func (r *report) chart() string {
	var body strings.Builder
	columns := 0
	rows := map[bool]int{}
	for _, c := range r.classes() {
		column := rows[c.shares]
		rows[c.shares]++
		columns = max(columns, column+1)
		line := 0
		if c.shares && rows[false] > 0 {
			line = 1
		}
		c.draw(&body, margin+column*(side+margin), top+line*(side+top+margin))
	}
	width, height := margin+columns*(side+margin), 2*(side+top+margin)
	if len(rows) < 2 {
		height /= 2
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" font-family="sans-serif" font-size="11" role="img">
<title>Measured against simulated time</title>
<rect width="100%%" height="100%%" fill="white"/>
%s</svg>
`, width, height, body.String())
}

// draw draws a class with its upper left corner at a point.
func (c class) draw(b *strings.Builder, left, top int) {
	low, high := math.Inf(1), 0.0
	for _, x := range c.cells {
		low, high = min(low, x.Median, *x.Simulated), max(high, x.Median, *x.Simulated)
	}
	first, last := math.Floor(math.Log10(low)), math.Ceil(math.Log10(high))
	at := func(µs float64) float64 { return (math.Log10(µs) - first) / (last - first) * side }
	fmt.Fprintf(b, `<g transform="translate(%d %d)"><text x="%d" y="-10" text-anchor="middle" font-weight="bold">%s</text><rect width="%d" height="%d" fill="none" stroke="#888"/>`+"\n",
		left, top, side/2, c.name(), side, side)
	for e := first; e <= last; e++ {
		x := at(math.Pow(10, e))
		label := fmt.Sprintf("%g", math.Pow(10, e))
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text><text x="-6" y="%.1f" text-anchor="end">%s</text>`, x, side+15, label, side-x+4, label)
		fmt.Fprintf(b, `<path d="M%.1f 0v%d M0 %.1fh%d" stroke="#eee"/>`+"\n", x, side, side-x, side)
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle">simulated µs</text><text transform="translate(-42 %d) rotate(-90)" text-anchor="middle">measured µs</text>`+"\n", side/2, side+30, side/2)
	line := func(factor float64, style string) { // measured = factor · simulated, within the panel
		lo, hi := math.Pow(10, first), math.Pow(10, last)
		from, to := max(lo, lo/factor), min(hi, hi/factor)
		fmt.Fprintf(b, `<path d="M%.1f %.1fL%.1f %.1f" %s/>`+"\n", at(from), side-at(from*factor), at(to), side-at(to*factor), style)
	}
	line(1, `stroke="#444"`)
	aim := aims[c.shares].most
	line(1/(1+aim), `stroke="#444" stroke-dasharray="4 3"`)
	line(1/(1-aim), `stroke="#444" stroke-dasharray="4 3"`)
	b.WriteString(`<path fill="none" stroke="#1b66a8" stroke-opacity="0.4" stroke-width="3" stroke-linecap="round" d="`)
	for _, x := range c.cells {
		fmt.Fprintf(b, "M%.1f %.1fh0", at(*x.Simulated), side-at(x.Median))
	}
	b.WriteString("\"/></g>\n")
}
