package draw

import (
	"fmt"
	"strconv"
)

// The grounds of what ranks hold.
const (
	ownGround  = "#f4f6f9"
	partGround = "#dbe8f6"
	doneGround = "#cdeadd"
)

func (l *ladder) draw(f *svg) {
	s := l.part.Schedule
	if l.caption != "" {
		f.text(14, 22, l.caption, "style", "font-weight:600")
	}
	for rank := range s.P {
		at := point{l.x(rank), l.top[0] - rankHeight/2 - 2}
		fill := pale
		if s.Collective.Rooted() && rank == s.Root {
			fill = rootGround
		}
		f.empty("circle", "cx", at.x, "cy", at.y, "r", 15, "fill", fill, "stroke", ink, "stroke-width", 1.5)
		f.text(at.x, at.y+5, strconv.Itoa(l.rank(rank)), "text-anchor", "middle", "style", "font-weight:600")
	}
	for k, row := range l.holds {
		if k > 0 {
			l.step(f, k-1)
		}
		l.numbers(f, k)
		for rank, words := range row {
			l.cells(f, k, rank, words)
		}
	}
}

// numbers writes the blocks' numbers beside a row of cells, and what row it is
// where they have none.
func (l *ladder) numbers(f *svg, k int) {
	if !celled(l.part.Schedule) {
		if k == 0 {
			f.text(14, l.top[0]+l.heights[0]/2+4.5, "start", "style", "font-size:12px;fill:"+faint)
		}
		return
	}
	for block := range l.part.Schedule.Blocks {
		f.text(l.left-8, l.top[k]+(float64(block)+0.5)*cellHeight+4, strconv.Itoa(block), "text-anchor", "end", "style", "font-size:11px;fill:"+faint)
	}
}

// cells draws what a rank holds: a cell for each block or, where that is not
// what it is about, one for all lines.
func (l *ladder) cells(f *svg, k, rank int, words []string) {
	width := l.column - 18
	x := l.x(rank) - width/2
	f.start("g", "class", "holds")
	if len(words) > 0 {
		f.words("title", fmt.Sprintf("%s, rank %d: %s", stateName(k), l.rank(rank), l.told(words)))
	}
	if !celled(l.part.Schedule) || len(words) == 0 {
		f.empty("rect", append([]any{"x", x, "y", l.top[k], "width", width, "height", l.heights[k], "rx", 4}, l.look(rank, words)...)...)
	}
	words = l.lines(words)
	// Fewer lines than the row has room for stand in its middle.
	y := l.top[k] + (l.heights[k]-float64(len(words))*cellHeight)/2
	if celled(l.part.Schedule) {
		l.grid(f, x, y, width, rank, words)
	}
	for i, word := range words {
		if word != "" {
			f.text(l.x(rank), y+(float64(i)+0.5)*cellHeight+4.5, word, "text-anchor", "middle", "style", "font-size:13px")
		}
	}
	f.end()
}

// grid draws a cell for each block, those that hold something over the others.
func (l *ladder) grid(f *svg, x, y, width float64, rank int, words []string) {
	for _, full := range []bool{false, true} {
		for i, word := range words {
			if full == (word != "") {
				f.empty("rect", append([]any{"x", x, "y", y + float64(i)*cellHeight, "width", width, "height", cellHeight}, l.cellLook(rank, i, word)...)...)
			}
		}
	}
}

// look is the look of all that a rank holds.
func (l *ladder) look(rank int, words []string) []any {
	if len(words) == 0 {
		return []any{"fill", "none", "stroke", "#d9dee6", "stroke-dasharray", "3 3"}
	}
	last := l.holds[len(l.holds)-1][rank]
	ground := partGround
	if len(last) == len(words) {
		ground = doneGround
		for i := range last {
			if last[i] != words[i] {
				ground = partGround
			}
		}
	}
	return []any{"fill", ground, "stroke", faint, "stroke-width", 1}
}

// cellLook is the look of one block.
func (l *ladder) cellLook(rank, block int, word string) []any {
	last := l.holds[len(l.holds)-1][rank]
	switch {
	case word == "":
		return []any{"fill", paper, "stroke", "#d9dee6"}
	case block < len(last) && last[block] == word:
		return []any{"fill", doneGround, "stroke", faint, "stroke-width", 1}
	}
	return []any{"fill", partGround, "stroke", faint, "stroke-width", 1}
}

// step draws the messages between two rows, and a line for each rank that keeps
// something.
func (l *ladder) step(f *svg, step int) {
	from, to := l.top[step]+l.heights[step], l.top[step+1]
	f.text(14, (from+to)/2+4, "step "+strconv.Itoa(step+1), "style", "font-weight:600;font-size:13px;fill:"+hue(step))
	for rank := range l.part.Schedule.P {
		if len(l.holds[step][rank]) > 0 && len(l.holds[step+1][rank]) > 0 {
			x := l.x(rank)
			f.empty("path", "d", straight(point{x, from}, point{x, to}).path(), "stroke", "#c3cad4", "stroke-width", 1.6)
		}
	}
	for _, m := range l.messages[step] {
		// They leave and land on the side where the other end is.
		aside := min(11, l.column/6)
		if m.To < m.From {
			aside = -aside
		}
		way := straight(point{l.x(m.From) + aside, from + 1}, point{l.x(m.To) - aside, to - 2})
		head, shaft := way.head()
		f.start("g", "class", "arrow")
		f.words("title", fmt.Sprintf("rank %d to rank %d in step %d", l.rank(m.From), l.rank(m.To), step+1))
		f.empty("path", "d", shaft.path(), "fill", "none", "stroke", hue(step), "stroke-width", 1.7, "stroke-dasharray", "6 3.5")
		f.empty("path", "d", head, "fill", hue(step))
		f.end()
	}
}
