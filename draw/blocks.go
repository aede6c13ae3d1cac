package draw

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Blocks draws the contents of each rank before the first step and after every
// step: ranks across, time down, and the messages of a step between two rows. A
// block is shown if the rank has just received it, will still need it, or has it
// as its result. Each part of the scene has a picture and steps of its own.
//
// The labels are close to those of textbooks. If the collective combines, 0+1 is
// the combined value of ranks 0 and 1, 0–3 the value of four ranks, and R the
// value of all ranks; each block has a cell. Otherwise a label is a set of
// blocks, such as (4–7). In an alltoall, 0,1→(4–7) are blocks 4 to 7 of ranks 0
// and 1. M is a whole message.
//
// Blocks returns an error if a picture would be too large to be read (more than
// 64 ranks or 4096 cells), if sends and receives of a schedule do not match, or
// if w fails.
func Blocks(w io.Writer, s Scene) error {
	if len(s.Parts) == 0 {
		return fmt.Errorf("block contents without a schedule: want one or more")
	}
	f := &blocksFigure{scene: s}
	cells := 0
	for _, part := range s.Parts {
		t, err := newBlockTable(part, len(s.Parts) > 1)
		if err != nil {
			return err
		}
		f.tables = append(f.tables, t)
		if cells += t.cellCount(); cells > maxCells {
			return fmt.Errorf("a picture of %s with more than %d cells: want fewer ranks", plural(len(s.Parts), "part"), maxCells)
		}
	}
	return f.draw().writeTo(w)
}

// A blocksFigure is a picture of the contents of ranks while it is drawn.
type blocksFigure struct {
	scene  Scene
	tables []*blockTable
	*svg
}

// draw arranges the tables in rows and columns.
func (f *blocksFigure) draw() *svg {
	var size point
	for _, t := range f.tables {
		size = point{max(size.x, t.width), max(size.y, t.height)}
	}
	legend := f.legend()
	grid := newPanelGrid(len(f.tables), size)
	width := max(grid.width(), size.x+28, legend.width)
	height := headerHeight + grid.height()
	head := newHeading(figureInset, 30, 18, titleOf(f.scene), f.subtitle(), width)
	width = max(width, head.width)
	f.svg = newSVG("blocks", titleOf(f.scene), f.describe(), width, height+footerHeight+head.more)
	head.draw(f.svg)
	for i, t := range f.tables {
		at := grid.draw(f.svg, i, width)
		f.start("g", "class", "part", "transform", "translate("+at.String()+")")
		t.draw(f.svg)
		f.end()
	}
	legend.draw(f.svg, figureInset, height+24)
	return f.svg
}

func (f *blocksFigure) subtitle() string {
	s := f.scene.Parts[0].Schedule
	if len(f.tables) > 1 {
		return fmt.Sprintf("%s: what each rank holds before the first step and after each", plural(len(f.tables), "part"))
	}
	return fmt.Sprintf("%s, %s: what each rank holds before the first step and after each", plural(s.P, "rank"), plural(len(f.tables[0].messages), "step"))
}

// legend explains the labels and colors of this figure.
func (f *blocksFigure) legend() legend {
	k := legend{items: []legendItem{{"arrow", "a message"}}}
	k.items = append(k.items, contentsLegend(f.scene.Parts)...)
	k.items = append(k.items, legendItem{"final", "as it is in the end"})
	if slices.ContainsFunc(f.tables, (*blockTable).hasEmptyCell) {
		k.items = append(k.items, legendItem{"empty", "no data, or none still needed"})
	}
	k.measure()
	return k
}

// describe returns the text alternative of the figure.
func (f *blocksFigure) describe() string {
	var b strings.Builder
	b.WriteString(f.subtitle() + ".")
	for _, t := range f.tables {
		if t.caption != "" {
			b.WriteString(" " + t.caption + ".")
		}
		for k, row := range t.states {
			if k > 0 {
				var messages []string
				for _, m := range t.messages[k-1] {
					messages = append(messages, fmt.Sprintf("%d→%d", t.globalRank(m.From), t.globalRank(m.To)))
				}
				fmt.Fprintf(&b, " Step %d: %s.", k, cmp.Or(strings.Join(messages, ", "), "no message"))
			}
			fmt.Fprintf(&b, " %s: %s.", stateName(k), cmp.Or(strings.Join(t.describeRow(row), "; "), "nothing"))
		}
	}
	return b.String()
}

// describeRow describes the contents of all ranks that hold something.
func (b *blockTable) describeRow(row [][]string) (texts []string) {
	for rank, lines := range row {
		if text := b.describeCell(lines); text != "" {
			texts = append(texts, fmt.Sprintf("rank %d holds %s", b.globalRank(rank), text))
		}
	}
	return texts
}

func stateName(k int) string {
	if k == 0 {
		return "At the start"
	}
	return "After step " + strconv.Itoa(k)
}

// describeCell describes the contents of one rank.
func (b *blockTable) describeCell(lines []string) string {
	if !hasLinePerBlock(b.part.Schedule) {
		return strings.Join(lines, ", ")
	}
	var texts []string
	for block, line := range lines {
		if line != "" {
			texts = append(texts, fmt.Sprintf("block %d of %s", block, line))
		}
	}
	return strings.Join(texts, ", ")
}
