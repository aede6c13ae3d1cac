package draw

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/sim"
)

// The fills of cells.
const (
	partialFill = "#dbe8f6"
	finalFill   = "#cdeadd"
)

// emptyCell are the attributes of a rectangle for nothing.
var emptyCell = [...]any{"fill", "none", "stroke", "#9aa3b0", "stroke-dasharray", "3 3"}

// A blockTable is the picture of one part. A row shows the contents of all ranks
// before the first step or after a step; a column belongs to a rank.
type blockTable struct {
	part     sim.Part
	caption  string
	states   [][][]string // lines of contents, by row and rank
	messages [][]sched.Message

	column, left  float64   // widths: of a column, and left of the first column
	top, heights  []float64 // of each row
	width, height float64
}

const (
	cellHeight = 20.0
	rankHeight = 44.0 // of the circles above the first row
	maxCells   = 4096
)

func newBlockTable(part sim.Part, captioned bool) (*blockTable, error) {
	s := part.Schedule
	t, err := s.Timeline()
	if err != nil {
		return nil, err
	}
	b := &blockTable{part: part, messages: make([][]sched.Message, t.Steps())}
	if s.P > maxNodes || b.cellCount() > maxCells {
		return nil, fmt.Errorf("a picture of %d cells, of what %s hold in %s: want at most %d ranks and %d cells",
			b.cellCount(), plural(s.P, "rank"), plural(t.Steps(), "step"), maxNodes, maxCells)
	}
	states, err := replay(s)
	if err != nil {
		return nil, err
	}
	for _, state := range states {
		row := make([][]string, s.P)
		for rank, c := range state {
			row[rank] = contentLines(s, c)
		}
		b.states = append(b.states, row)
	}
	for step := range t.Steps() {
		b.messages[step] = t.Messages(step)
	}
	if captioned {
		b.caption = fmt.Sprintf("%v %s, ranks %s", s.Collective, s.Algorithm, b.rankList())
	}
	b.measure()
	return b, nil
}

// cellCount returns the number of cells.
func (b *blockTable) cellCount() int {
	cells := b.part.Schedule.P * (len(b.messages) + 1)
	if hasLinePerBlock(b.part.Schedule) {
		cells *= b.part.Schedule.Blocks
	}
	return cells
}

func (b *blockTable) rankList() string {
	var all []int
	for rank := range b.part.Schedule.P {
		all = append(all, b.globalRank(rank))
	}
	return formatRanges(all)
}

func (b *blockTable) globalRank(i int) int { return globalRank(b.part.Ranks, i) }

// measure computes widths and heights.
func (b *blockTable) measure() {
	widest := 30.0
	y := rankHeight
	if b.caption != "" {
		y += 26
	}
	for k, row := range b.states {
		n := 1
		for _, lines := range row {
			lines = b.wrap(lines)
			n = max(n, len(lines))
			for _, line := range lines {
				widest = max(widest, textWidth(line, 13)+10)
			}
		}
		b.top = append(b.top, y)
		b.heights = append(b.heights, float64(n)*cellHeight)
		y += b.heights[k]
		if k < len(b.messages) {
			y += b.stepHeight(k)
		}
	}
	b.left = 68
	b.column = widest + 18
	b.width = b.left + b.column*float64(b.part.Schedule.P) + 10
	b.height = y + 12
}

// wrap breaks long lines after commas, unless lines stand for blocks.
func (b *blockTable) wrap(lines []string) (wrapped []string) {
	const most = 24
	if hasLinePerBlock(b.part.Schedule) {
		return lines
	}
	for _, long := range lines {
		current := ""
		for piece := range strings.SplitAfterSeq(long, ",") {
			if current != "" && len(current)+len(piece) > most {
				wrapped = append(wrapped, current)
				current = ""
			}
			current += piece
		}
		wrapped = append(wrapped, current)
	}
	return wrapped
}

// stepHeight returns the height of the gap for the arrows of a step. It grows
// with the largest distance between sender and receiver.
func (b *blockTable) stepHeight(step int) float64 {
	distance := 0
	for _, m := range b.messages[step] {
		distance = max(distance, m.To-m.From, m.From-m.To)
	}
	if distance == 0 {
		return 28
	}
	return min(40+6*float64(distance), 100)
}

func (b *blockTable) columnCenter(rank int) float64 { return b.left + b.column*(float64(rank)+0.5) }

func (b *blockTable) draw(f *svg) {
	s := b.part.Schedule
	if b.caption != "" {
		f.text(14, 22, b.caption, "style", "font-weight:600")
	}
	for rank := range s.P {
		at := point{b.columnCenter(rank), b.top[0] - rankHeight/2 - 2}
		fill := subtle
		if s.Collective.Rooted() && rank == s.Root {
			fill = rootFill
		}
		f.empty("circle", "cx", at.x, "cy", at.y, "r", 15, "fill", fill, "stroke", foreground, "stroke-width", 1.5)
		f.text(at.x, at.y+5, strconv.Itoa(b.globalRank(rank)), "text-anchor", "middle", "style", "font-weight:600")
	}
	for k, row := range b.states {
		if k > 0 {
			b.drawStep(f, k-1)
		}
		b.drawBlockNumbers(f, k)
		for rank, lines := range row {
			b.drawCell(f, k, rank, lines)
		}
	}
}

// drawBlockNumbers writes the block numbers to the left of row k. Rows without
// a line per block have none; the first of them is marked as the start.
func (b *blockTable) drawBlockNumbers(f *svg, k int) {
	if !hasLinePerBlock(b.part.Schedule) {
		if k == 0 {
			f.text(14, b.top[0]+b.heights[0]/2+4.5, "start", "style", "font-size:12px;fill:"+muted)
		}
		return
	}
	for block := range b.part.Schedule.Blocks {
		f.text(b.left-8, b.top[k]+(float64(block)+0.5)*cellHeight+4, strconv.Itoa(block), "text-anchor", "end", "style", "font-size:11px;fill:"+muted)
	}
}

// drawCell draws the contents of a rank: one rectangle per block if each block
// has a line, else one rectangle for all lines.
func (b *blockTable) drawCell(f *svg, k, rank int, lines []string) {
	width := b.column - 18
	x := b.columnCenter(rank) - width/2
	f.start("g", "class", "holds")
	if len(lines) > 0 {
		f.element("title", fmt.Sprintf("%s, rank %d: %s", stateName(k), b.globalRank(rank), b.describeCell(lines)))
	}
	if !hasLinePerBlock(b.part.Schedule) || len(lines) == 0 {
		f.empty("rect", append([]any{"x", x, "y", b.top[k], "width", width, "height", b.heights[k], "rx", 4}, b.cellStyle(rank, lines)...)...)
	}
	lines = b.wrap(lines)
	// The lines are centered vertically.
	y := b.top[k] + (b.heights[k]-float64(len(lines))*cellHeight)/2
	if hasLinePerBlock(b.part.Schedule) {
		b.drawBlocks(f, x, y, width, rank, lines)
	}
	for i, line := range lines {
		if line != "" {
			f.text(b.columnCenter(rank), y+(float64(i)+0.5)*cellHeight+4.5, line, "text-anchor", "middle", "style", "font-size:13px")
		}
	}
	f.end()
}

// drawBlocks draws a rectangle for each block, filled ones on top.
func (b *blockTable) drawBlocks(f *svg, x, y, width float64, rank int, lines []string) {
	for _, filled := range []bool{false, true} {
		for i, line := range lines {
			if filled == (line != "") {
				f.empty("rect", append([]any{"x", x, "y", y + float64(i)*cellHeight, "width", width, "height", cellHeight}, b.blockStyle(rank, i, line)...)...)
			}
		}
	}
}

// hasEmptyCell reports whether a rank holds nothing before a step or at the end.
func (b *blockTable) hasEmptyCell() bool {
	for _, row := range b.states {
		for _, lines := range row {
			if len(lines) == 0 {
				return true
			}
		}
	}
	return false
}

// cellStyle returns the attributes of the rectangle for all lines.
func (b *blockTable) cellStyle(rank int, lines []string) []any {
	if len(lines) == 0 {
		return emptyCell[:]
	}
	last := b.states[len(b.states)-1][rank]
	fill := partialFill
	if len(last) == len(lines) {
		fill = finalFill
		for i := range last {
			if last[i] != lines[i] {
				fill = partialFill
			}
		}
	}
	return []any{"fill", fill, "stroke", muted, "stroke-width", 1}
}

// blockStyle returns the attributes of the rectangle of one block.
func (b *blockTable) blockStyle(rank, block int, line string) []any {
	last := b.states[len(b.states)-1][rank]
	switch {
	case line == "":
		return []any{"fill", background, "stroke", "#d9dee6"}
	case block < len(last) && last[block] == line:
		return []any{"fill", finalFill, "stroke", muted, "stroke-width", 1}
	}
	return []any{"fill", partialFill, "stroke", muted, "stroke-width", 1}
}

// drawStep draws the messages between two rows, and a line for each rank that
// holds something in both.
func (b *blockTable) drawStep(f *svg, step int) {
	from, to := b.top[step]+b.heights[step], b.top[step+1]
	f.text(14, (from+to)/2+4, "step "+strconv.Itoa(step+1), "style", "font-weight:600;font-size:13px;fill:"+stepColor(step))
	for rank := range b.part.Schedule.P {
		if len(b.states[step][rank]) > 0 && len(b.states[step+1][rank]) > 0 {
			x := b.columnCenter(rank)
			f.empty("path", "d", straight(point{x, from}, point{x, to}).path(), "stroke", "#c3cad4", "stroke-width", 1.6)
		}
	}
	for _, m := range b.messages[step] {
		// An arrow starts and ends on the side of its peer.
		offset := min(11, b.column/6)
		if m.To < m.From {
			offset = -offset
		}
		curve := straight(point{b.columnCenter(m.From) + offset, from + 1}, point{b.columnCenter(m.To) - offset, to - 2})
		head, shaft := curve.arrowhead()
		f.start("g", "class", "arrow")
		f.element("title", fmt.Sprintf("rank %d to rank %d in step %d", b.globalRank(m.From), b.globalRank(m.To), step+1))
		f.empty("path", "d", shaft.path(), "fill", "none", "stroke", stepColor(step), "stroke-width", 1.7, "stroke-dasharray", "6 3.5")
		f.empty("path", "d", head, "fill", stepColor(step))
		f.end()
	}
}
