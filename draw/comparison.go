package draw

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

// A Comparison lays the simulated timeline of a call beside the real one. Times are shares of
// the whole time of either, from 0 to 1, so that both have one axis.
type Comparison struct {
	Title, Note string
	Notes       []string // of the page, below the table

	Simulated float64 // the whole, in Unit
	Unit      string  // of the simulation, as in µs; "" for the unit of ts
	Real      float64 // the whole, in seconds

	Steps []ComparedStep // in the order of the simulated timeline
	Rest  ComparedShare  // after the last message
	Ranks []ComparedRank
}

// unit returns the unit of the simulated time.
func (c *Comparison) unit() string { return cmp.Or(c.Unit, "the unit of ts") }

// A ComparedShare is a part of the whole time.
type ComparedShare struct{ Simulated, Real float64 }

// A ComparedStep is a step of all ranks: from when the one before it is done on all of them until
// it is.
type ComparedStep struct {
	ComparedShare
	Parts bool // the shares differ so much that the figure marks it
}

// A ComparedRank is what one rank does in one call.
type ComparedRank []ComparedSpan

// A ComparedSpan is a step of a rank: from when its previous one has ended until it has.
type ComparedSpan struct {
	Step                         int // of the timeline, from 0
	SimulatedStart, SimulatedEnd float64
	RealStart, RealEnd           float64
	Parts                        bool
}

const maxComparedSpans = 4096

func (c *Comparison) check(what string) error {
	spans := 0
	for _, r := range c.Ranks {
		spans += len(r)
	}
	if len(c.Ranks) > maxTimelines || spans > maxComparedSpans {
		return fmt.Errorf("%s of %s with %s: want at most %d with %d, to be legible; a trace (.json) may have any number",
			what, plural(len(c.Ranks), "rank"), plural(spans, "step"), maxTimelines, maxComparedSpans)
	}
	return nil
}

// Compare draws a comparison: above, the steps of all ranks, each simulated step over the real
// one; below, two bars for each rank, of which the upper one is simulated. What parts is outlined
// in red.
//
// Compare returns an error if there are more than 64 ranks or 4096 steps of ranks, or if w fails.
func Compare(w io.Writer, c Comparison) error {
	if err := c.check("a figure"); err != nil {
		return err
	}
	return newComparisonFigure(&c).draw().writeTo(w)
}

// A comparisonFigure is the figure of a comparison while it is drawn.
type comparisonFigure struct {
	*Comparison
	left, width float64 // of the axis
	top         float64 // of the strip of simulated steps
	rows        float64 // where the first rank begins
	bar         float64 // the height of a bar
	*svg
}

// The heights of the figure's parts, in pixels.
const (
	stripHeight = 22.0 // of the steps of all ranks
	stripGap    = 34.0 // between the simulated and the real ones
	rowGap      = 9.0  // between ranks
)

func newComparisonFigure(c *Comparison) *comparisonFigure {
	f := &comparisonFigure{Comparison: c, width: 860, top: 150, bar: 11}
	f.left = 28 + max(textWidth("simulated", 13), textWidth(fmt.Sprintf("rank %d", max(len(c.Ranks)-1, 0)), 13))
	if len(c.Ranks) > 20 {
		f.bar = 6
	}
	f.rows = f.top + 2*stripHeight + stripGap + 30
	return f
}

func (f *comparisonFigure) rowHeight() float64 { return 2*f.bar + rowGap }

func (f *comparisonFigure) bottom() float64 { return f.rows + float64(len(f.Ranks))*f.rowHeight() }

// x returns the position of a share. The conversion prevents a fused multiply-add.
func (f *comparisonFigure) x(share float64) float64 { return f.left + float64(share*f.width) }

func (f *comparisonFigure) draw() *svg {
	whole := f.left + f.width + 40
	head := newHeading(24, 34, 19, f.Title, f.Note, whole)
	f.svg = newSVG("comparison", f.Title, f.describe(), max(whole, head.width), f.bottom()+66+head.more)
	head.draw(f.svg)
	f.drawLegend()
	f.drawAxes()
	f.drawStrips()
	for rank := range f.Ranks {
		f.drawRank(rank)
	}
	return f.svg
}

// drawLegend explains the bars.
func (f *comparisonFigure) drawLegend() {
	x, y := 24.0, 78.0
	entry := func(text string, attributes ...any) {
		f.empty("rect", append([]any{"x", x, "y", y, "width", 26, "height", 13}, attributes...)...)
		f.text(x+33, y+11, text, "style", "font-size:13px")
		x += 33 + textWidth(text, 13) + 18
	}
	entry("simulated", "fill", stepTint(0), "stroke", stepColor(0))
	entry("real", "fill", stepColor(0), "stroke", stepColor(0))
	entry("they part here, by so many points", "fill", "none", "stroke", red, "stroke-width", 2.5)
	f.text(x, y+11, "a color is a step of the simulated timeline", "style", "font-size:13px;fill:"+muted)
}

// drawAxes draws the one axis with its two scales: of the simulation above, of the real call below.
func (f *comparisonFigure) drawAxes() {
	top, bottom := f.top-8, f.bottom()+4
	size, unit := 1e6, "µs"
	for _, u := range []struct {
		size float64
		name string
	}{{1, "s"}, {1e3, "ms"}} {
		if f.Real*u.size >= 10 {
			size, unit = u.size, u.name
			break
		}
	}
	scale := func(y, tick, text, beyond, whole float64, name string) {
		f.empty("line", "x1", f.left, "y1", y, "x2", f.left+f.width, "y2", y, "stroke", muted, "stroke-width", 1)
		if whole > 0 {
			for _, t := range roundTicks(whole, int(f.width/90)) {
				f.empty("line", "x1", f.x(t/whole), "y1", y, "x2", f.x(t/whole), "y2", y+tick, "stroke", muted, "stroke-width", 1)
				f.text(f.x(t/whole), y+text, shortNumber(t), "text-anchor", "middle", "style", "font-size:12px")
			}
		}
		f.text(f.left+f.width/2, y+text+beyond, name, "text-anchor", "middle", "style", "font-size:13px;fill:"+muted)
	}
	scale(top, -4, -9, -17, f.Simulated, "simulated time, in "+f.unit())
	scale(bottom, 4, 18, 19, f.Real*size, "real time in "+unit+", from when the last rank came")
}

// drawStrips draws the steps of all ranks, and how each real one has moved.
func (f *comparisonFigure) drawStrips() {
	lower := f.top + stripHeight + stripGap
	f.text(f.left-12, f.top+15, "simulated", "text-anchor", "end", "style", "font-size:13px")
	f.text(f.left-12, lower+15, "real", "text-anchor", "end", "style", "font-size:13px")
	var at ComparedShare
	var marks []func()
	for i, s := range f.Steps {
		x1, x2 := f.x(at.Simulated), f.x(at.Simulated+s.Simulated)
		y1, y2 := f.x(at.Real), f.x(at.Real+s.Real)
		between := fmt.Sprintf("M%s %sL%s %sL%s %sL%s %sZ", number(x1), number(f.top+stripHeight), number(x2), number(f.top+stripHeight),
			number(y2), number(lower), number(y1), number(lower))
		title := fmt.Sprintf("step %d: %s of the simulated time, %s of the real one", i+1, percent(s.Simulated), percent(s.Real))
		f.empty("path", "d", between, "fill", stepTint(i), "fill-opacity", "0.45")
		f.bars(x1, x2, f.top, stripHeight, i, true, false, title)
		f.bars(y1, y2, lower, stripHeight, i, false, false, title)
		f.number(i, x1, x2, f.top+15.5, foreground)
		f.number(i, y1, y2, lower+15.5, background)
		if s.Parts {
			outline := fmt.Sprintf("M%s %sH%sV%sL%s %sV%sH%sV%sL%s %sZ", number(x1), number(f.top), number(x2), number(f.top+stripHeight),
				number(y2), number(lower), number(lower+stripHeight), number(y1), number(lower), number(x1), number(f.top+stripHeight))
			marks = append(marks, func() {
				f.empty("path", "d", outline, "fill", "none", "stroke", red, "stroke-width", 2.5, "stroke-linejoin", "round")
				f.text((y1+y2)/2, lower+stripHeight+14, signed(100*(s.Real-s.Simulated)), "text-anchor", "middle", "style", "font-size:12px;font-weight:600;fill:"+red)
			})
		}
		at.Simulated, at.Real = at.Simulated+s.Simulated, at.Real+s.Real
	}
	for _, mark := range marks { // over all steps
		mark()
	}
}

// number writes the number of a step where it has room.
func (f *comparisonFigure) number(step int, x1, x2, y float64, fill string) {
	if text := fmt.Sprint(step + 1); textWidth(text, 12)+4 <= x2-x1 {
		f.text((x1+x2)/2, y, text, "text-anchor", "middle", "style", "font-size:12px;font-weight:600;fill:"+fill)
	}
}

func (f *comparisonFigure) drawRank(rank int) {
	y := f.rows + float64(float64(rank)*f.rowHeight())
	f.text(f.left-12, y+f.bar+4, fmt.Sprintf("rank %d", rank), "text-anchor", "end", "style", "font-size:13px")
	for _, marked := range []bool{false, true} { // marks over their neighbors
		for _, s := range f.Ranks[rank] {
			if s.Parts != marked {
				continue
			}
			title := fmt.Sprintf("rank %d, step %d: %s of the simulated time, %s of the real one", rank, s.Step+1,
				percent(s.SimulatedEnd-s.SimulatedStart), percent(s.RealEnd-s.RealStart))
			f.bars(f.x(s.SimulatedStart), f.x(s.SimulatedEnd), y, f.bar, s.Step, true, false, title)
			f.bars(f.x(s.RealStart), f.x(s.RealEnd), y+f.bar, f.bar, s.Step, false, s.Parts, title)
		}
	}
}

// bars draws one bar, with a tooltip.
func (f *comparisonFigure) bars(x1, x2, y, height float64, step int, simulated, parts bool, title string) {
	fill, stroke, width := stepColor(step), background, 0.6
	if simulated {
		fill, stroke = stepTint(step), stepColor(step)
	}
	if parts {
		stroke, width = red, 2.2
	}
	f.start("rect", "x", x1, "y", y, "width", max(x2-x1, 0), "height", height, "fill", fill, "stroke", stroke, "stroke-width", width)
	f.element("title", title)
	f.end()
}

func signed(points float64) string { return fmt.Sprintf("%+.1f", points) }

func percent(share float64) string { return fmt.Sprintf("%.1f%%", 100*share) }

// describe returns the text alternative of the figure.
func (f *comparisonFigure) describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "The steps of %s over the whole time, simulated above and real below, from left to right.", plural(len(f.Ranks), "rank"))
	for i, s := range f.Steps {
		if i == maxListed {
			fmt.Fprintf(&b, " And %d more steps.", len(f.Steps)-i)
			break
		}
		fmt.Fprintf(&b, " Step %d: %s simulated, %s real", i+1, percent(s.Simulated), percent(s.Real))
		if s.Parts {
			b.WriteString(", they part")
		}
		b.WriteString(".")
	}
	if !slices.ContainsFunc(f.Steps, func(s ComparedStep) bool { return s.Parts }) {
		b.WriteString(" They part in no step.")
	}
	return b.String()
}
