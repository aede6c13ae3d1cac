package draw

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// shadeSteps shades the steps in the background, in turn, and numbers them. Steps
// that do not overlap are bands over all ranks. If steps overlap, each rank has
// its own bands, and the numbers stand at the starts of the steps.
func (f *spaceTimeFigure) shadeSteps() {
	disjoint, last := true, 0.0
	for _, step := range f.scene.Result.PerStep {
		if step.Messages > 0 {
			disjoint = disjoint && step.Start >= last
			last = step.End
		}
	}
	if !disjoint {
		f.shadeRankSteps()
	}
	free := 0.0
	for i, step := range f.scene.Result.PerStep {
		if step.Messages == 0 {
			continue // the step has only local copies
		}
		x, width := f.x(step.Start), f.x(step.End)-f.x(step.Start)
		if disjoint {
			f.shadeBand(i, x, f.top-22, width, f.height+22)
		}
		label := fmt.Sprintf("step %d", i+1)
		if textWidth(label, 13) > width {
			label = strconv.Itoa(i + 1)
		}
		needs := textWidth(label, 13)
		if !disjoint {
			width = needs
		}
		if x >= free && needs <= width {
			f.text(x+width/2, f.top-7, label, "text-anchor", "middle", "style", "font-size:13px;font-weight:600;fill:"+stepColor(i))
			free = x + width
		}
	}
}

func (f *spaceTimeFigure) shadeBand(step int, x, y, width, height float64) {
	fill := subtle
	if step%2 == 1 {
		fill = "#f8f9fb"
	}
	f.empty("rect", "x", x, "y", y, "width", width, "height", height, "fill", fill)
}

// shadeRankSteps shades the steps of each rank separately.
func (f *spaceTimeFigure) shadeRankSteps() {
	r := f.scene.Result
	type span struct{ start, end float64 }
	for rank := range f.tracks {
		spans := make([]span, r.Steps)
		for _, m := range r.Log {
			if m.From != rank && m.To != rank {
				continue
			}
			s := &spans[m.Step]
			if s.end == 0 {
				s.start = m.Start
			}
			s.start, s.end = min(s.start, m.Start), max(s.end, m.End)
		}
		for i, s := range spans {
			if s.end > s.start {
				f.shadeBand(i, f.x(s.start), f.rows[rank], f.x(s.end)-f.x(s.start), f.rowHeight(rank))
			}
		}
	}
}

func (f *spaceTimeFigure) rowHeight(rank int) float64 {
	return f.trackHeight*float64(len(f.tracks[rank].out)+len(f.tracks[rank].in)) + f.rowGap
}

// drawAxis draws the time axis below the ranks.
func (f *spaceTimeFigure) drawAxis() {
	bottom := f.top + f.height
	f.start("g", "stroke", muted, "stroke-width", 1)
	f.empty("line", "x1", f.left, "y1", bottom, "x2", f.left+f.width, "y2", bottom)
	ticks := roundTicks(f.span, int(f.width/80))
	for _, t := range ticks {
		f.empty("line", "x1", f.x(t), "y1", bottom, "x2", f.x(t), "y2", bottom+5)
		f.empty("line", "x1", f.x(t), "y1", f.top, "x2", f.x(t), "y2", bottom, "stroke-opacity", "0.18")
	}
	f.end()
	for _, t := range ticks {
		f.text(f.x(t), bottom+21, shortNumber(t), "text-anchor", "middle", "style", "font-size:13px")
	}
	f.text(f.left+f.width/2, bottom+46, "time, in the unit of ts", "text-anchor", "middle")
	total := f.scene.Result.Time
	f.empty("line", "x1", f.x(total), "y1", f.top-6, "x2", f.x(total), "y2", bottom+5, "stroke", foreground, "stroke-width", 1.5)
	anchor := "end"
	if total == 0 {
		anchor = "start"
	}
	f.text(f.x(total), f.top-28, "done at "+shortNumber(total), "text-anchor", anchor, "style", "font-weight:600")
}

// drawLegend explains the activities that occur.
func (f *spaceTimeFigure) drawLegend() {
	occurs := make(map[activity]bool)
	for _, t := range f.tracks {
		for _, track := range slices.Concat(t.out, t.in) {
			for _, b := range track {
				occurs[b.activity] = true
			}
		}
	}
	x, y := 24.0, 52.0
	entry := func(text string, attributes ...any) {
		f.empty("rect", append([]any{"x", x, "y", y, "width", 26, "height", 13}, attributes...)...)
		f.text(x+33, y+11, text, "style", "font-size:13px")
		x += 33 + textWidth(text, 13) + 18
	}
	if occurs[sending] {
		entry("sent", "fill", stepColor(0), "stroke", stepColor(0))
		entry("received", "fill", stepTint(0), "stroke", stepColor(0))
	}
	if occurs[waiting] {
		entry("waits for a link or a port", "fill", "url(#spacetime-waits)", "stroke", red, "stroke-opacity", "0.5")
	}
	if occurs[combining] {
		entry("combines", "fill", combiningFill, "stroke", combiningStroke)
	}
	if len(f.critical) > 0 {
		f.empty("line", "x1", x, "y1", y+7, "x2", x+18, "y2", y+7, "stroke", foreground, "stroke-width", 2.6)
		f.empty("path", "d", fmt.Sprintf("M%s %sl-11 -5v10z", number(x+28), number(y+7)), "fill", foreground)
		f.text(x+35, y+11, "critical path", "style", "font-size:13px")
	}
}

// maxListed is how many messages a description lists.
const maxListed = 64

// describe returns the text alternative of the figure.
func (f *spaceTimeFigure) describe() string {
	r := f.scene.Result
	var b strings.Builder
	fmt.Fprintf(&b, "Space–time diagram of %d ranks, from top to bottom, over the time from 0 to %s in the unit of ts, from left to right.", r.Ranks, shortNumber(r.Time))
	step := -1
	for i, m := range r.Log {
		if i == maxListed {
			fmt.Fprintf(&b, "; and %d more", len(r.Log)-i)
			break
		}
		if m.Step != step {
			step = m.Step
			fmt.Fprintf(&b, " Step %d: ", step+1)
		} else {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%d→%d from %s to %s", m.From, m.To, shortNumber(m.Start), shortNumber(m.End))
		if m.Start > m.Ready {
			fmt.Fprintf(&b, ", after waiting since %s", shortNumber(m.Ready))
		}
		if i+1 == len(r.Log) || r.Log[i+1].Step != step {
			b.WriteString(".")
		}
	}
	for i, leg := range r.Path {
		if i == 0 {
			b.WriteString(" The critical path: ")
		} else if i == maxListed {
			fmt.Fprintf(&b, ", and %d more", len(r.Path)-i)
			break
		} else {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%d→%d", leg.From, leg.To)
		if leg.WaitedFor != "" {
			fmt.Fprintf(&b, " (waits for %s)", leg.WaitedFor)
		}
	}
	if len(r.Path) > 0 {
		b.WriteString(".")
	}
	return b.String()
}

// roundTicks returns about n multiples of a round number, from 0 up to span.
func roundTicks(span float64, n int) []float64 {
	rough := span / float64(max(n, 1))
	unit := math.Pow(10, math.Floor(math.Log10(rough)))
	switch {
	case rough/unit > 5:
		unit *= 10
	case rough/unit > 2:
		unit *= 5
	case rough/unit > 1:
		unit *= 2
	}
	var ticks []float64
	for i := 0; float64(i)*unit <= span*(1+1e-9); i++ {
		ticks = append(ticks, float64(i)*unit)
	}
	return ticks
}
