package draw

import (
	"fmt"
	"strconv"

	"github.com/chorale-go/chorale/topo"
)

// A label is words in a panel, around a point.
type label struct {
	at     point
	lines  []string
	colour string
	size   float64
	bold   bool
	chip   bool // on a ground of its own
}

const lineHeight = 1.2 // of a font's size

func (l label) box() box {
	width := 0.0
	for _, words := range l.lines {
		width = max(width, textWidth(words, l.size))
	}
	height := float64(len(l.lines)) * l.size * lineHeight
	if l.chip {
		return around(l.at, width+6, height+4)
	}
	return around(l.at, width+2, height)
}

// arrange finds a way for every arrow and a place for every label.
func (p *panel) arrange(f *networkFigure) {
	l := &f.plan
	p.ways = l.arrows(p.pairs)
	p.bounds = box{max: point{l.width, l.height}}
	s := newSpace(l, p.ways)
	for _, load := range p.loads {
		w, turned := wireOf(l, load.link)
		s.place(label{lines: []string{fmt.Sprintf("×%d", load.messages)}, colour: red, size: 15, bold: true}, along(w, turned), 1, 12)
	}
	for i, way := range p.ways {
		s.place(label{lines: []string{numbered(p.steps[i])}, colour: p.hue(i), size: 13, bold: true}, way, outer(way), 9)
	}
	for v, words := range p.holds {
		if len(words) > 0 {
			s.placeNear(label{lines: words, colour: ink, size: 13, chip: true}, l.at[v], l.radius)
		}
	}
	p.labels = s.labels
	for _, way := range p.ways {
		p.bounds = p.bounds.join(way.bounds())
	}
	for _, label := range p.labels {
		p.bounds = p.bounds.join(label.box())
	}
}

// numbered writes the numbers of steps, from 1 on.
func numbered(steps []int) string {
	var from1 []int
	for _, step := range steps {
		from1 = append(from1, step+1)
	}
	return runs(from1)
}

// hue is the colour of an arrow: its step's, if it has but one.
func (p *panel) hue(arrow int) string {
	if steps := p.steps[arrow]; len(steps) == 1 {
		return hue(steps[0])
	}
	return ink
}

// wireOf returns the wire of a directed link, and whether the link leads from
// its second end to its first.
func wireOf(l *plan, link int) (w *wire, turned bool) {
	for i := range l.wires {
		if w := &l.wires[i]; w.there == link || w.back == link {
			return w, w.back == link
		}
	}
	return nil, false
}

// along returns the curve of a wire in the direction of a link.
func along(w *wire, turned bool) curve {
	if turned {
		return w.curve.reverse()
	}
	return w.curve
}

func (p *panel) draw(f *networkFigure) {
	l := &f.plan
	f.start("g", "fill", "none", "stroke", "#aeb6c2", "stroke-width", 1.6)
	for _, w := range l.wires {
		f.empty("path", "d", w.curve.path())
	}
	f.end()
	for _, load := range p.loads {
		p.congested(f, load)
	}
	for i, way := range p.ways {
		p.arrow(f, i, way)
	}
	for v := range l.at {
		f.vertex(v) // over an arrow that cannot but pass behind
	}
	for _, label := range p.labels {
		f.label(label)
	}
}

// congested draws a link in red, with a chevron that points where the messages
// want to go.
func (p *panel) congested(f *networkFigure, load load) {
	w, turned := wireOf(&f.plan, load.link)
	way := along(w, turned)
	f.start("g", "class", "congested", "fill", "none", "stroke", red, "stroke-width", 3.4)
	f.words("title", fmt.Sprintf("link %s: %d messages at once", topo.LinkName(f.scene.Result.Config.Topology, load.link), load.messages))
	f.empty("path", "d", way.path())
	tip, heading := way.at(0.68), way.heading(0.68)
	back, side := tip.minus(heading.times(9)), heading.left().times(6)
	f.empty("path", "d", fmt.Sprintf("M%s L%s L%s", back.plus(side), tip, back.minus(side)), "stroke-width", 2.6)
	f.end()
}

// vertex draws a processor as a circle with the number of its rank, a switch as
// a square.
func (f *networkFigure) vertex(v int) {
	l, at := &f.plan, f.plan.at[v]
	top := f.scene.Result.Config.Topology
	if v >= l.processors {
		f.start("rect", "class", "switch", "x", at.x-switchSize/2, "y", at.y-switchSize/2, "width", switchSize, "height", switchSize,
			"rx", 2, "fill", "#cfd6e0", "stroke", faint, "stroke-width", 1.2)
		f.words("title", "switch "+top.Name(v))
		f.end()
		return
	}
	rank := f.rankAt(v)
	fill, stroke := pale, ink
	if rank < 0 {
		fill, stroke = paper, "#aeb6c2"
	} else if f.isRoot(rank) {
		fill = rootGround
	}
	f.start("g", "class", "node")
	f.empty("circle", "cx", at.x, "cy", at.y, "r", l.radius, "fill", fill, "stroke", stroke, "stroke-width", 1.5)
	y := at.y + 5
	if l.bits > 0 {
		y = at.y + 1
		f.text(at.x, at.y+14, binary(v, l.bits), "text-anchor", "middle", "style", "font-size:11px;fill:#4a5362")
	}
	if rank >= 0 {
		f.text(at.x, y, strconv.Itoa(rank), "text-anchor", "middle", "style", "font-weight:600")
	}
	f.end()
}

// binary is how a processor of a hypercube is numbered.
func binary(v, bits int) string { return fmt.Sprintf("%0*b", bits, v) }

// node is what the description calls a processor.
func (f *networkFigure) node(v int) string {
	if rank := f.rankAt(v); rank >= 0 {
		return fmt.Sprintf("rank %d", rank)
	}
	return fmt.Sprintf("processor %d", v)
}

// rankAt returns the rank on a processor, or -1.
func (f *networkFigure) rankAt(v int) int {
	for rank := range f.scene.Result.Ranks {
		if f.seat(rank) == v {
			return rank
		}
	}
	return -1
}

// isRoot tells whether all data come from the rank or go to it.
func (f *networkFigure) isRoot(rank int) bool {
	if len(f.scene.Parts) != 1 {
		return false
	}
	part := f.scene.Parts[0]
	return part.Schedule.Collective.Rooted() && partRank(part.Ranks, part.Schedule.Root) == rank
}

func (p *panel) arrow(f *networkFigure, i int, way curve) {
	head, shaft := way.head()
	colour := p.hue(i)
	f.start("g", "class", "arrow")
	f.words("title", fmt.Sprintf("%s to %s in step %s", f.node(p.pairs[i][0]), f.node(p.pairs[i][1]), numbered(p.steps[i])))
	f.empty("path", "d", shaft.path(), "fill", "none", "stroke", colour, "stroke-width", 1.9, "stroke-dasharray", "6 3.5")
	f.empty("path", "d", head, "fill", colour)
	f.end()
}

// label writes words on a ground of paper, so that lines do not strike them
// out.
func (f *networkFigure) label(l label) {
	if l.chip {
		b := l.box()
		f.empty("rect", "x", b.min.x, "y", b.min.y, "width", b.max.x-b.min.x, "height", b.max.y-b.min.y, "rx", 5, "fill", "#e3eefa", "stroke", "#9dbbdc", "stroke-width", 0.8)
	}
	weight := ""
	if l.bold {
		weight = ";font-weight:700"
	}
	style := "font-size:" + number(l.size) + "px;fill:" + l.colour + weight
	if !l.chip {
		style += ";paint-order:stroke;stroke:" + paper + ";stroke-width:4px;stroke-linejoin:round"
	}
	step := l.size * lineHeight
	y := l.at.y - float64(len(l.lines)-1)*step/2 + l.size*0.36
	for i, words := range l.lines {
		f.text(l.at.x, y+float64(i)*step, words, "text-anchor", "middle", "style", style)
	}
}

// legend says what the signs of this figure mean.
func (f *networkFigure) legend() key {
	k := key{items: []keyItem{{"arrow", "a message, with the number of its step"}}}
	for _, p := range f.panels {
		if len(p.loads) > 0 {
			k.items = append(k.items, keyItem{"red", "a link that is asked to carry several messages at once, and how many"})
			break
		}
	}
	if f.plan.processors < len(f.plan.at) {
		k.items = append(k.items, keyItem{"switch", "a switch"})
	}
	for _, p := range f.panels {
		if len(p.holds) > 0 {
			if celled(f.scene.Parts[0].Schedule) {
				k.items = append(k.items, keyItem{"part", "2,3: 0.1: blocks 2 and 3 of ranks 0 and 1 together; R: of all"})
			} else {
				k.items = append(k.items, meaning(f.scene.Parts)...)
			}
			break
		}
	}
	for rank := range f.scene.Result.Ranks {
		if f.isRoot(rank) {
			k.items = append(k.items, keyItem{"root", "the root"})
		}
	}
	k.measure()
	return k
}
