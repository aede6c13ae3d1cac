package draw

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/chorale-go/chorale/sim"
)

// Limits above which a space–time figure is illegible.
const (
	maxTimelines      = 64   // ranks
	maxTimelineArrows = 1024 // messages
)

// SpaceTime draws the activity of each rank over time: ranks down, time across. A
// message has a bar at its sender, a lighter bar at its receiver, and an arrow
// from its start to its arrival. Hatched bars show a message that waits for a link
// or a port. The critical path has outlined bars and heavy arrows.
//
// SpaceTime returns an error if the scene has no log, if there are more than 64
// ranks or 1024 messages, or if w fails.
func SpaceTime(w io.Writer, s Scene) error {
	if err := checkRecorded(s); err != nil {
		return err
	}
	r := s.Result
	if r.Ranks > maxTimelines || len(r.Log) > maxTimelineArrows {
		return fmt.Errorf("a space–time figure of %d messages among %d ranks: want at most %d among %d, to be legible",
			len(r.Log), r.Ranks, maxTimelineArrows, maxTimelines)
	}
	return newSpaceTimeFigure(s).draw().writeTo(w)
}

// A spaceTimeFigure is a space–time figure while it is drawn.
type spaceTimeFigure struct {
	scene    Scene
	tracks   []rankTracks
	tracksOf []endpoints            // by message, indices in the tracks of its ranks, out before in
	critical map[sim.Message]string // the messages of the critical path, with the resource they wait for or ""
	spaceTimeLayout
	*svg
}

// A spaceTimeLayout has the positions and sizes of the rows, in pixels. A row
// shows a rank.
type spaceTimeLayout struct {
	left, top           float64 // of all rows
	width, height       float64 // of all rows
	trackHeight, rowGap float64
	compact             bool // bars are too low for text
	rows                []float64
	span                float64 // the time that corresponds to width
}

func newSpaceTimeFigure(s Scene) *spaceTimeFigure {
	r := s.Result
	f := &spaceTimeFigure{scene: s, tracks: newRankTracks(s), critical: make(map[sim.Message]string)}
	for _, leg := range r.Path {
		f.critical[leg.Message] = leg.WaitedFor
	}
	f.tracksOf = trackIndices(f.tracks, len(r.Log))
	f.spaceTimeLayout = newSpaceTimeLayout(r, f.tracks)
	return f
}

func newSpaceTimeLayout(r *sim.Result, tracks []rankTracks) spaceTimeLayout {
	l := spaceTimeLayout{
		left:        28 + textWidth("rank "+strconv.Itoa(r.Ranks-1), 14),
		top:         106,
		width:       min(max(float64(len(r.PerStep))*150, 760), 1500),
		trackHeight: 15,
		rowGap:      14,
		span:        r.Time,
	}
	if l.compact = r.Ranks > 20; l.compact {
		l.trackHeight, l.rowGap = 9, 6
	}
	if l.span == 0 {
		l.span = 1
	}
	for _, t := range tracks {
		l.rows = append(l.rows, l.top+l.height)
		l.height += l.trackHeight*float64(len(t.out)+len(t.in)) + l.rowGap
	}
	return l
}

// trackIndices returns the tracks of each message at its sender and receiver.
func trackIndices(tracks []rankTracks, messages int) []endpoints {
	at := make([]endpoints, messages)
	for _, r := range tracks {
		for i, out := range r.out {
			for _, bar := range out {
				at[bar.message].send = i
			}
		}
		for i, in := range r.in {
			for _, bar := range in {
				if bar.activity == receiving {
					at[bar.message].recv = len(r.out) + i
				}
			}
		}
	}
	return at
}

func (f *spaceTimeFigure) draw() *svg {
	r := f.scene.Result
	figure := f.left + f.width + 60
	head := newHeading(24, 34, 19, titleOf(f.scene), "", figure)
	f.svg = newSVG("spacetime", titleOf(f.scene), f.describe(), max(figure, head.width), f.top+f.height+84+head.more)
	f.start("defs")
	f.start("pattern", "id", "spacetime-waits", "width", 6, "height", 6, "patternUnits", "userSpaceOnUse", "patternTransform", "rotate(45)")
	f.empty("rect", "width", 6, "height", 6, "fill", background)
	f.empty("rect", "width", 2, "height", 6, "fill", red, "fill-opacity", "0.55")
	f.end()
	f.end()
	head.draw(f.svg)
	f.drawLegend()
	f.shadeSteps()
	f.drawAxis()
	for rank, t := range f.tracks {
		f.drawRow(rank, t)
	}
	for _, critical := range []bool{false, true} { // critical arrows on top
		for i := range r.Log {
			if f.isCritical(r.Log[i]) == critical {
				f.drawArrow(i)
			}
		}
	}
	f.drawLabels()
	return f.svg
}

// x returns the position of a time. The conversion prevents a fused multiply-add,
// so that figures have the same bytes on all machines.
func (l *spaceTimeLayout) x(time float64) float64 { return l.left + float64(time/l.span*l.width) }

// y returns the top of a track of a rank, out before in.
func (l *spaceTimeLayout) y(rank, track int) float64 {
	return l.rows[rank] + l.rowGap/2 + float64(track)*l.trackHeight
}

// drawRow draws a rank's name and its bars.
func (f *spaceTimeFigure) drawRow(rank int, t rankTracks) {
	top, middle := f.rows[rank], f.rows[rank]+f.rowHeight(rank)/2
	f.empty("line", "x1", f.left, "y1", top, "x2", f.left+f.width, "y2", top, "stroke", muted, "stroke-opacity", "0.35", "stroke-width", 1)
	size := "14px"
	if f.compact {
		size = "11px"
	}
	f.text(f.left-12, middle+5, fmt.Sprintf("rank %d", rank), "text-anchor", "end", "style", "font-size:"+size)
	for i, track := range t.out {
		f.drawBars(track, f.y(rank, i))
	}
	for i, track := range t.in {
		f.drawBars(track, f.y(rank, len(t.out)+i))
	}
}

// drawBars draws the bars of one track, each with a tooltip.
func (f *spaceTimeFigure) drawBars(t track, y float64) {
	for _, b := range t {
		attributes := []any{"x", f.x(b.start), "y", y + 1, "width", f.x(b.end) - f.x(b.start), "height", f.trackHeight - 2}
		title := fmt.Sprintf("combines, from %s to %s", shortNumber(b.start), shortNumber(b.end))
		if b.message >= 0 && b.activity != combining {
			m := f.scene.Result.Log[b.message]
			attributes = append(attributes, f.barStyle(b.activity, m)...)
			title = f.tooltip(b, m)
		} else {
			attributes = append(attributes, "fill", combiningFill, "stroke", combiningStroke, "stroke-width", 1)
		}
		f.svg.start("rect", attributes...)
		f.element("title", title)
		f.svg.end()
	}
}

// The color of combining differs from the step colors.
const (
	combiningFill   = "#f4c542"
	combiningStroke = "#8a6a00"
)

// barStyle returns the attributes of a bar.
func (f *spaceTimeFigure) barStyle(a activity, m sim.Message) []any {
	stroke, width := stepColor(m.Step), 1.0
	if f.isCritical(m) {
		stroke, width = foreground, 2
	}
	switch a {
	case waiting:
		return []any{"fill", "url(#spacetime-waits)", "stroke", red, "stroke-opacity", "0.5", "stroke-width", 1}
	case sending:
		return []any{"fill", stepColor(m.Step), "stroke", stroke, "stroke-width", width}
	}
	return []any{"fill", stepTint(m.Step), "stroke", stroke, "stroke-width", width}
}

// stepTint returns a light shade of the color of a step.
func stepTint(step int) string {
	v, _ := strconv.ParseUint(stepColor(step)[1:], 16, 32) // stepColor returns constants of this package
	mixed := uint64(0)
	for shift := 16; shift >= 0; shift -= 8 {
		mixed = mixed<<8 | (v>>shift&0xff*28+0xff*72)/100
	}
	return fmt.Sprintf("#%06x", mixed)
}

func (f *spaceTimeFigure) tooltip(b bar, m sim.Message) string {
	verb := [...]string{sending: "sent", receiving: "received", waiting: "waits"}[b.activity]
	noun := "words"
	if m.Words == 1 {
		noun = "word"
	}
	return fmt.Sprintf("step %d, %d→%d, %d %s: %s from %s to %s", m.Step+1, m.From, m.To, m.Words, noun, verb, shortNumber(b.start), shortNumber(b.end))
}

func (f *spaceTimeFigure) isCritical(m sim.Message) bool {
	_, ok := f.critical[m]
	return ok
}

// drawLabels labels every bar that has room, above the arrows: messages with the
// other rank, and waits on the critical path with the resource.
func (f *spaceTimeFigure) drawLabels() {
	if f.compact {
		return
	}
	for rank, t := range f.tracks {
		for i, track := range slices.Concat(t.out, t.in) {
			for _, b := range track {
				f.drawLabel(rank, i, b)
			}
		}
	}
}

func (f *spaceTimeFigure) drawLabel(rank, i int, b bar) {
	if b.activity == combining {
		return
	}
	m := f.scene.Result.Log[b.message]
	text, fill, outline := "", foreground, background
	switch {
	case b.activity == sending:
		text, fill, outline = fmt.Sprintf("→ %d", m.To), background, stepColor(m.Step)
	case b.activity == receiving:
		text, outline = fmt.Sprintf("← %d", m.From), stepTint(m.Step)
	case rank == m.From:
		text = f.critical[m]
	}
	width := f.x(b.end) - f.x(b.start)
	if text == "" || textWidth(text, 11)+6 > width {
		return
	}
	f.text(f.x(b.start)+width/2, f.y(rank, i)+f.trackHeight/2+4, text, "text-anchor", "middle",
		"style", "font-size:11px;paint-order:stroke;stroke-width:3px;stroke-linejoin:round;stroke:"+outline+";fill:"+fill)
}

// drawArrow draws an arrow from the start of a message to its arrival.
func (f *spaceTimeFigure) drawArrow(i int) {
	m := f.scene.Result.Log[i]
	x1, y1 := f.x(m.Start), f.y(m.From, f.tracksOf[i].send)+f.trackHeight/2
	x2, y2 := f.x(m.End), f.y(m.To, f.tracksOf[i].recv)+f.trackHeight/2
	color, width, head := stepColor(m.Step), 1.3, 9.0
	if f.isCritical(m) {
		color, width, head = foreground, 2.6, 12
	}
	length := math.Hypot(x2-x1, y2-y1)
	if length == 0 {
		return
	}
	dx, dy := (x2-x1)/length, (y2-y1)/length
	along := func(back, side float64) string { // a point of the head, relative to its tip
		return number(x2-float64(dx*back)-float64(dy*side)) + " " + number(y2-float64(dy*back)+float64(dx*side))
	}
	shaft := "M" + number(x1) + " " + number(y1) + "L" + along(head*0.8, 0)
	f.empty("path", "d", shaft, "fill", "none", "stroke", background, "stroke-opacity", "0.8", "stroke-width", width+2.4)
	f.empty("path", "d", shaft, "fill", "none", "stroke", color, "stroke-width", width)
	f.empty("circle", "cx", x1, "cy", y1, "r", width+1.2, "fill", color, "stroke", background, "stroke-width", 1)
	f.empty("path", "d", "M"+along(0, 0)+"L"+along(head, head*0.42)+"L"+along(head, -head*0.42)+"Z",
		"fill", color, "stroke", background, "stroke-width", 0.8)
}
