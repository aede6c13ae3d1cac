package draw

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/chorale-go/chorale/sim"
)

// What a space–time figure can hold and still be read.
const (
	mostTimelines = 64
	mostArrows    = 1024
)

// SpaceTime draws when each rank does what: ranks down, time across. A message
// is a bar where it is sent, a lighter one where it is received, and an arrow
// from when it starts to when it has come. What waits for a link or a port is
// hatched. The messages of the critical path are outlined, and their arrows
// heavy.
//
// An error says that there is nothing, or too much, to be read; or is the
// writer's.
func SpaceTime(w io.Writer, s Scene) error {
	if err := recorded(s); err != nil {
		return err
	}
	r := s.Result
	if r.Ranks > mostTimelines || len(r.Log) > mostArrows {
		return fmt.Errorf("a space–time figure of %d messages among %d ranks: want at most %d among %d, or nobody can read it",
			len(r.Log), r.Ranks, mostArrows, mostTimelines)
	}
	return newSpaceTime(s).draw().writeTo(w)
}

// recorded reports an error unless a scene has all messages.
func recorded(s Scene) error {
	if s.Result == nil || len(s.Result.Log) != s.Result.Messages {
		return fmt.Errorf("a simulation without its log: want one made with Record")
	}
	return nil
}

// A spaceTime is a figure under way.
type spaceTime struct {
	scene    Scene
	lanes    []lanes
	on       []place                // per message, its lanes: of those out at its sender, of those in at its receiver
	critical map[sim.Message]string // what those of the critical path wait for, or ""
	*svg

	left, top     float64 // of the ranks' rows
	width, height float64 // of all rows
	lane, gap     float64 // heights of a lane, and between rows
	small         bool    // too small for words on bars
	rows          []float64
	span          float64 // the time that the width stands for
}

func newSpaceTime(s Scene) *spaceTime {
	r := s.Result
	f := &spaceTime{scene: s, lanes: newLanes(s), critical: make(map[sim.Message]string), span: r.Time}
	for _, leg := range r.Path {
		f.critical[leg.Message] = leg.WaitedFor
	}
	if f.span == 0 {
		f.span = 1
	}
	f.on = lanesOf(f.lanes, len(r.Log))
	f.left = 28 + textWidth("rank "+strconv.Itoa(r.Ranks-1), 14)
	f.top = 106
	f.width = min(max(float64(len(r.PerStep))*150, 760), 1500)
	f.lane, f.gap = 15, 14
	if f.small = r.Ranks > 20; f.small {
		f.lane, f.gap = 9, 6
	}
	for _, l := range f.lanes {
		f.rows = append(f.rows, f.top+f.height)
		f.height += f.lane*float64(len(l.out)+len(l.in)) + f.gap
	}
	return f
}

// lanesOf returns on which lanes each message is.
func lanesOf(all []lanes, messages int) []place {
	on := make([]place, messages)
	for _, l := range all {
		for i, out := range l.out {
			for _, b := range out {
				on[b.message].send = i
			}
		}
		for i, in := range l.in {
			for _, b := range in {
				if b.deed == receives {
					on[b.message].recv = len(l.out) + i
				}
			}
		}
	}
	return on
}

func (f *spaceTime) draw() *svg {
	r := f.scene.Result
	f.svg = newSVG("spacetime", f.scene.Title, f.describe(), max(f.left+f.width+60, titleWidth(f.scene.Title)), f.top+f.height+84)
	f.start("defs")
	f.start("pattern", "id", "spacetime-waits", "width", 6, "height", 6, "patternUnits", "userSpaceOnUse", "patternTransform", "rotate(45)")
	f.empty("rect", "width", 6, "height", 6, "fill", paper)
	f.empty("rect", "width", 2, "height", 6, "fill", red, "fill-opacity", "0.55")
	f.end()
	f.end()
	f.text(24, 34, f.scene.Title, "style", "font-size:19px;font-weight:600")
	f.legend()
	f.steps()
	f.axis()
	for rank, l := range f.lanes {
		f.row(rank, l)
	}
	for _, critical := range []bool{false, true} { // which come on top
		for i := range r.Log {
			if f.isCritical(r.Log[i]) == critical {
				f.arrow(i)
			}
		}
	}
	f.labels()
	return f.svg
}

// x is where a time is. The conversion keeps machines that can fuse a product
// and a sum from rounding otherwise than the others.
func (f *spaceTime) x(time float64) float64 { return f.left + float64(time/f.span*f.width) }

// y is the top of a lane of a rank; lanes in come after those out.
func (f *spaceTime) y(rank, lane int) float64 {
	return f.rows[rank] + f.gap/2 + float64(lane)*f.lane
}

// row draws a rank's name and its bars.
func (f *spaceTime) row(rank int, l lanes) {
	top, middle := f.rows[rank], f.rows[rank]+f.rowHeight(rank)/2
	f.empty("line", "x1", f.left, "y1", top, "x2", f.left+f.width, "y2", top, "stroke", faint, "stroke-opacity", "0.35", "stroke-width", 1)
	size := "14px"
	if f.small {
		size = "11px"
	}
	f.text(f.left-12, middle+5, fmt.Sprintf("rank %d", rank), "text-anchor", "end", "style", "font-size:"+size)
	for i, lane := range l.out {
		f.bars(lane, f.y(rank, i))
	}
	for i, lane := range l.in {
		f.bars(lane, f.y(rank, len(l.out)+i))
	}
}

// bars draws the bars of one lane, each with words for who points at it.
func (f *spaceTime) bars(l lane, y float64) {
	for _, b := range l {
		attributes := []any{"x", f.x(b.start), "y", y + 1, "width", f.x(b.end) - f.x(b.start), "height", f.lane - 2}
		tip := fmt.Sprintf("combines, from %s to %s", shortNumber(b.start), shortNumber(b.end))
		if b.message >= 0 && b.deed != combines {
			m := f.scene.Result.Log[b.message]
			attributes = append(attributes, f.look(b.deed, m)...)
			tip = f.tip(b, m)
		} else {
			attributes = append(attributes, "fill", combiningFill, "stroke", combiningEdge, "stroke-width", 1)
		}
		f.svg.start("rect", attributes...)
		f.words("title", tip)
		f.svg.end()
	}
}

// Combining has a colour that is no step's.
const (
	combiningFill = "#f4c542"
	combiningEdge = "#8a6a00"
)

// look is the fill and the edge of a bar.
func (f *spaceTime) look(d deed, m sim.Message) []any {
	edge, width := hue(m.Step), 1.0
	if f.isCritical(m) {
		edge, width = ink, 2
	}
	switch d {
	case waits:
		return []any{"fill", "url(#spacetime-waits)", "stroke", red, "stroke-opacity", "0.5", "stroke-width", 1}
	case sends:
		return []any{"fill", hue(m.Step), "stroke", edge, "stroke-width", width}
	}
	return []any{"fill", tint(m.Step), "stroke", edge, "stroke-width", width}
}

// tint is a light shade of a step's colour.
func tint(step int) string {
	v, _ := strconv.ParseUint(hue(step)[1:], 16, 32) // it is one of ours
	mixed := uint64(0)
	for shift := 16; shift >= 0; shift -= 8 {
		mixed = mixed<<8 | (v>>shift&0xff*28+0xff*72)/100
	}
	return fmt.Sprintf("#%06x", mixed)
}

func (f *spaceTime) tip(b bar, m sim.Message) string {
	what := [...]string{sends: "sent", receives: "received", waits: "waits"}[b.deed]
	words := "words"
	if m.Words == 1 {
		words = "word"
	}
	return fmt.Sprintf("step %d, %d→%d, %d %s: %s from %s to %s", m.Step+1, m.From, m.To, m.Words, words, what, shortNumber(b.start), shortNumber(b.end))
}

func (f *spaceTime) isCritical(m sim.Message) bool {
	_, ok := f.critical[m]
	return ok
}

// labels writes the other end of each message on its bar, above the arrows, and
// what the critical path waits for, where there is room.
func (f *spaceTime) labels() {
	if f.small {
		return
	}
	for rank, l := range f.lanes {
		for i, lane := range slices.Concat(l.out, l.in) {
			for _, b := range lane {
				f.label(rank, i, b)
			}
		}
	}
}

func (f *spaceTime) label(rank, i int, b bar) {
	if b.deed == combines {
		return
	}
	m := f.scene.Result.Log[b.message]
	words, fill, ground := "", ink, paper
	switch {
	case b.deed == sends:
		words, fill, ground = fmt.Sprintf("→ %d", m.To), paper, hue(m.Step)
	case b.deed == receives:
		words, ground = fmt.Sprintf("← %d", m.From), tint(m.Step)
	case rank == m.From:
		words = f.critical[m]
	}
	width := f.x(b.end) - f.x(b.start)
	if words == "" || textWidth(words, 11)+6 > width {
		return
	}
	f.text(f.x(b.start)+width/2, f.y(rank, i)+f.lane/2+4, words, "text-anchor", "middle",
		"style", "font-size:11px;paint-order:stroke;stroke-width:3px;stroke-linejoin:round;stroke:"+ground+";fill:"+fill)
}

// arrow leads from when a message starts at its sender to when it has come.
func (f *spaceTime) arrow(i int) {
	m := f.scene.Result.Log[i]
	x1, y1 := f.x(m.Start), f.y(m.From, f.on[i].send)+f.lane/2
	x2, y2 := f.x(m.End), f.y(m.To, f.on[i].recv)+f.lane/2
	colour, width, head := hue(m.Step), 1.3, 9.0
	if f.isCritical(m) {
		colour, width, head = ink, 2.6, 12
	}
	length := math.Hypot(x2-x1, y2-y1)
	if length == 0 {
		return
	}
	dx, dy := (x2-x1)/length, (y2-y1)/length
	along := func(back, aside float64) string { // a point of the head, seen from its tip
		return number(x2-float64(dx*back)-float64(dy*aside)) + " " + number(y2-float64(dy*back)+float64(dx*aside))
	}
	shaft := "M" + number(x1) + " " + number(y1) + "L" + along(head*0.8, 0)
	f.empty("path", "d", shaft, "fill", "none", "stroke", paper, "stroke-opacity", "0.8", "stroke-width", width+2.4)
	f.empty("path", "d", shaft, "fill", "none", "stroke", colour, "stroke-width", width)
	f.empty("circle", "cx", x1, "cy", y1, "r", width+1.2, "fill", colour, "stroke", paper, "stroke-width", 1)
	f.empty("path", "d", "M"+along(0, 0)+"L"+along(head, head*0.42)+"L"+along(head, -head*0.42)+"Z",
		"fill", colour, "stroke", paper, "stroke-width", 0.8)
}
