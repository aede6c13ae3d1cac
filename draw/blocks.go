package draw

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/sim"
)

// Blocks draws what each rank holds before the first step and after each: ranks
// across, time down, and between two rows the messages of a step. It shows what
// a rank has just received, will still need, or has as its result. Each part of the scene has a
// picture of its own, with steps of its own.
//
// Labels are those of the textbooks. Where the collective combines, 0.1 is the
// combination of what ranks 0 and 1 have brought, 0–3 that of four, and R that
// of all; if the vector has several blocks, each has a cell. Else a label is a
// set of blocks, such as (4–7); in an alltoall, 0,1→(4–7) are those from ranks
// 0 and 1. M is a whole message.
//
// An error says that it would be too large to be read, that a schedule does not
// fit together, or is the writer's.
func Blocks(w io.Writer, s Scene) error {
	if len(s.Parts) == 0 {
		return fmt.Errorf("block contents without a schedule: want one or more")
	}
	f := &blocksFigure{scene: s}
	cells := 0
	for _, part := range s.Parts {
		l, err := newLadder(part, len(s.Parts) > 1)
		if err != nil {
			return err
		}
		f.ladders = append(f.ladders, l)
		if cells += l.count(); cells > maxCells {
			return fmt.Errorf("a picture of %s with more than %d cells: want fewer ranks", amount(len(s.Parts), "part"), maxCells)
		}
	}
	return f.draw().writeTo(w)
}

// A blocksFigure is a picture of block contents under way.
type blocksFigure struct {
	scene   Scene
	ladders []*ladder
	*svg
}

// A ladder is the picture of one part: its rows are what ranks hold.
type ladder struct {
	part     sim.Part
	caption  string
	holds    [][][]string // by row and rank, a word for each line
	messages [][]sched.Message

	column, left  float64 // widths: of a rank, and of what stands before the first
	top           []float64
	heights       []float64
	width, height float64
}

const (
	cellHeight = 20.0
	rankHeight = 44.0
	maxCells   = 4096
)

func newLadder(part sim.Part, captioned bool) (*ladder, error) {
	s := part.Schedule
	t, err := s.Timeline()
	if err != nil {
		return nil, err
	}
	l := &ladder{part: part, messages: make([][]sched.Message, t.Steps())}
	if s.P > maxNodes || l.count() > maxCells {
		return nil, fmt.Errorf("a picture of %d cells, of what %s hold in %s: want at most %d ranks and %d cells",
			l.count(), amount(s.P, "rank"), amount(t.Steps(), "step"), maxNodes, maxCells)
	}
	states, err := histories(s)
	if err != nil {
		return nil, err
	}
	for _, state := range states {
		row := make([][]string, s.P)
		for rank, held := range state {
			row[rank] = contents(s, held)
		}
		l.holds = append(l.holds, row)
	}
	for step := range t.Steps() {
		l.messages[step] = t.Messages(step)
	}
	if captioned {
		l.caption = fmt.Sprintf("%v %s, ranks %s", s.Collective, s.Algorithm, l.ranks())
	}
	l.measure()
	return l, nil
}

// count is how many values it shows.
func (l *ladder) count() int {
	cells := l.part.Schedule.P * (len(l.messages) + 1)
	if celled(l.part.Schedule) {
		cells *= l.part.Schedule.Blocks
	}
	return cells
}

func (l *ladder) ranks() string {
	var all []int
	for rank := range l.part.Schedule.P {
		all = append(all, l.rank(rank))
	}
	return runs(all)
}

func (l *ladder) rank(i int) int { return partRank(l.part.Ranks, i) }

// measure finds the widths and heights of all that is drawn.
func (l *ladder) measure() {
	widest := 30.0
	y := rankHeight
	if l.caption != "" {
		y += 26
	}
	for k, row := range l.holds {
		lines := 1
		for _, words := range row {
			words = l.lines(words)
			lines = max(lines, len(words))
			for _, word := range words {
				widest = max(widest, textWidth(word, 13)+10)
			}
		}
		l.top = append(l.top, y)
		l.heights = append(l.heights, float64(lines)*cellHeight)
		y += l.heights[k]
		if k < len(l.messages) {
			y += l.gap(k)
		}
	}
	l.left = 68
	l.column = widest + 18
	l.width = l.left + l.column*float64(l.part.Schedule.P) + 10
	l.height = y + 12
}

// lines breaks what is too long for one line where numbers end.
func (l *ladder) lines(words []string) (all []string) {
	const most = 24
	if celled(l.part.Schedule) {
		return words
	}
	for _, word := range words {
		line := ""
		for piece := range strings.SplitAfterSeq(word, ",") {
			if line != "" && len(line)+len(piece) > most {
				all = append(all, line)
				line = ""
			}
			line += piece
		}
		all = append(all, line)
	}
	return all
}

// gap is the height between the row of a step and the next: the farther
// messages go the more they need.
func (l *ladder) gap(step int) float64 {
	far := 0
	for _, m := range l.messages[step] {
		far = max(far, m.To-m.From, m.From-m.To)
	}
	if far == 0 {
		return 28
	}
	return min(40+6*float64(far), 100)
}

func (l *ladder) x(rank int) float64 { return l.left + l.column*(float64(rank)+0.5) }

// draw lays out the ladders side by side and in rows.
func (f *blocksFigure) draw() *svg {
	var size point
	for _, l := range f.ladders {
		size = point{max(size.x, l.width), max(size.y, l.height)}
	}
	columns := columnsFor(len(f.ladders), size)
	rows := (len(f.ladders) + columns - 1) / columns
	legend := f.legend()
	width := max(float64(columns)*(size.x+panelGap)-panelGap+28, textWidth(headline(f.scene), 18)+40, textWidth(f.byline(), 13)+40, legend.width)
	height := headRoom + float64(rows)*(size.y+panelGap) - panelGap
	f.svg = newSVG("blocks", headline(f.scene), f.describe(), width, height+footRoom)
	f.text(20, 30, headline(f.scene), "style", "font-size:18px;font-weight:600")
	f.text(20, 50, f.byline(), "style", "font-size:13px;fill:"+faint)
	inset := (width - float64(columns)*(size.x+panelGap) + panelGap) / 2
	for i, l := range f.ladders {
		at := point{inset + float64(i%columns)*(size.x+panelGap), headRoom + float64(i/columns)*(size.y+panelGap)}
		if len(f.ladders) > 1 {
			f.empty("rect", "x", at.x, "y", at.y, "width", size.x, "height", size.y, "rx", 8, "fill", "none", "stroke", "#d9dee6")
		}
		f.start("g", "class", "part", "transform", "translate("+at.String()+")")
		l.draw(f.svg)
		f.end()
	}
	legend.draw(f.svg, 20, height+24)
	return f.svg
}

func (f *blocksFigure) byline() string {
	s := f.scene.Parts[0].Schedule
	if len(f.ladders) > 1 {
		return fmt.Sprintf("%s: what each rank holds before the first step and after each", amount(len(f.ladders), "part"))
	}
	return fmt.Sprintf("%s, %s: what each rank holds before the first step and after each", amount(s.P, "rank"), amount(len(f.ladders[0].messages), "step"))
}

// legend says what the labels and colours of this figure mean.
func (f *blocksFigure) legend() key {
	k := key{items: []keyItem{{"arrow", "a message"}}}
	k.items = append(k.items, meaning(f.scene.Parts)...)
	k.items = append(k.items, keyItem{"done", "as it is in the end"})
	k.measure()
	return k
}

// describe says in words all that the figure shows.
func (f *blocksFigure) describe() string {
	var b strings.Builder
	b.WriteString(f.byline() + ".")
	for _, l := range f.ladders {
		if l.caption != "" {
			b.WriteString(" " + l.caption + ".")
		}
		for k, row := range l.holds {
			if k > 0 {
				var messages []string
				for _, m := range l.messages[k-1] {
					messages = append(messages, fmt.Sprintf("%d→%d", l.rank(m.From), l.rank(m.To)))
				}
				fmt.Fprintf(&b, " Step %d: %s.", k, cmp.Or(strings.Join(messages, ", "), "no message"))
			}
			fmt.Fprintf(&b, " %s: %s.", stateName(k), cmp.Or(strings.Join(l.tell(row), "; "), "nothing"))
		}
	}
	return b.String()
}

// tell writes what ranks hold in a row, without those that hold nothing.
func (l *ladder) tell(row [][]string) (all []string) {
	for rank, words := range row {
		if held := l.told(words); held != "" {
			all = append(all, fmt.Sprintf("rank %d holds %s", l.rank(rank), held))
		}
	}
	return all
}

func stateName(k int) string {
	if k == 0 {
		return "At the start"
	}
	return "After step " + strconv.Itoa(k)
}

// told writes what one rank holds.
func (l *ladder) told(words []string) string {
	if !celled(l.part.Schedule) {
		return strings.Join(words, ", ")
	}
	var all []string
	for block, word := range words {
		if word != "" {
			all = append(all, fmt.Sprintf("block %d of %s", block, word))
		}
	}
	return strings.Join(all, ", ")
}
