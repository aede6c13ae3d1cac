package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// The measures of the chart, in pixels.
const (
	margin      = 16
	nameWidth   = 110
	cellWidth   = 42
	cellHeight  = 20
	titleHeight = 62
	groupWidth  = 130 // for the median of a number of ranks
	minWidth    = 720 // for titles
)

// chart draws every ratio of the collectives as a colored cell, with a line for each collective and a
// column for each number of ranks and size: blue where we are faster, red where we
// are slower.
func (r *report) chart() string {
	var body strings.Builder
	y, width := margin, minWidth
	for _, c := range r.Results {
		if c.Part != "" || c.Against == againstOurControl {
			continue
		}
		height, right := c.draw(&body, y)
		y, width = y+height+margin, max(width, right)
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" font-family="sans-serif" font-size="11" role="img">
<title>How many times as long the best peer takes</title>
<rect width="100%%" height="100%%" fill="white"/>
%s</svg>
`, width+margin, y, body.String())
}

// draw draws one comparison from y downwards, and returns its height and its right
// end.
func (c comparison) draw(b *strings.Builder, y int) (height, right int) {
	// A column is a number of ranks and a size; a barrier is in the first column of
	// its number of ranks.
	var (
		lines  = newTable("", []comparison{c}).lines
		sizes  []int
		names  []string
		column = map[int]int{}
		row    = map[string]int{}
	)
	for _, l := range lines {
		if _, ok := column[l.bytes]; !ok && l.bytes > 0 {
			column[l.bytes] = len(sizes)
			sizes = append(sizes, l.bytes)
		}
		if _, ok := row[l.collective]; !ok {
			row[l.collective] = len(names)
			names = append(names, l.collective)
		}
	}
	group := max(len(sizes)*cellWidth, groupWidth) + margin
	left := margin + nameWidth
	label := func(x, y int, anchor, style, text string) {
		fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="%s" %s>%s</text>`+"\n", x, y, anchor, style, html.EscapeString(text))
	}
	label(margin, y+14, "start", `font-size="14" font-weight="bold"`, c.title())
	label(margin, y+30, "start", `fill="#555"`, "times as long as ours")
	for i, s := range c.ByRanks {
		label(left+i*group, y+46, "start", "", fmt.Sprintf("%s: median %s", plural(s.Ranks, "rank"), digits(s.Median)))
		for j, size := range sizes {
			label(left+i*group+j*cellWidth+cellWidth/2, y+58, "middle", `fill="#555"`, short(size))
		}
	}
	for i, name := range names {
		label(left-8, y+titleHeight+i*cellHeight+14, "end", "", name)
	}
	for _, l := range lines {
		for i, s := range c.ByRanks {
			x, ok := l.cells[i]
			if !ok {
				continue
			}
			px, py := left+i*group+column[l.bytes]*cellWidth, y+titleHeight+row[l.collective]*cellHeight
			fill, text := colors(x.Ratio)
			fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s"><title>%s</title></rect>`+"\n",
				px, py, cellWidth-1, cellHeight-1, fill,
				html.EscapeString(fmt.Sprintf("%s, %s bytes, n=%d: %s takes %s µs, ours (%s) %s µs",
					l.collective, short(l.bytes), s.Ranks, x.Peers[0].How, digits(x.Peers[0].Time), x.Ours.How, digits(x.Ours.Time))))
			label(px+cellWidth/2, py+14, "middle", fmt.Sprintf(`fill="%s"`, text), digits(x.Ratio))
		}
	}
	return titleHeight + len(names)*cellHeight, left + len(c.ByRanks)*group
}

// colors returns the color of a ratio's cell and of the text on it. The color is
// saturated from a factor of four on.
func colors(ratio float64) (fill, text string) {
	strength := math.Min(1, math.Abs(math.Log2(ratio))/2)
	mix := func(full int) int { return 245 - int(strength*float64(245-full)) }
	fill = fmt.Sprintf("#%02x%02x%02x", mix(0x1b), mix(0x66), mix(0xa8))
	if ratio < 1 {
		fill = fmt.Sprintf("#%02x%02x%02x", mix(0xc0), mix(0x45), mix(0x12))
	}
	if strength > 0.6 {
		return fill, "white"
	}
	return fill, "black"
}
