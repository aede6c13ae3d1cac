package draw

import (
	"fmt"
	"strconv"

	"github.com/chorale-go/chorale/topo"
)

// A label is text centered at a point.
type label struct {
	at    point
	lines []string
	color string
	size  float64
	bold  bool
	badge bool // in a box with a fill
}

const lineHeight = 1.2 // as a multiple of the font size

func (l label) bounds() rect {
	width := 0.0
	for _, line := range l.lines {
		width = max(width, textWidth(line, l.size))
	}
	height := float64(len(l.lines)) * l.size * lineHeight
	if l.badge {
		return rectAround(l.at, width+6, height+4)
	}
	return rectAround(l.at, width+2, height)
}

// arrange finds a curve for every arrow and a position for every label.
func (p *panel) arrange(f *networkFigure) {
	l := &f.layout
	p.curves = l.arrowCurves(p.pairs)
	p.bounds = rect{max: point{l.width, l.height}}
	placer := newLabelPlacer(l, p.curves)
	for _, c := range p.congested {
		e, reversed := edgeOf(l, c.link)
		placer.placeOnCurve(label{lines: []string{fmt.Sprintf("×%d", c.messages)}, color: red, size: 15, bold: true}, linkCurve(e, reversed), 1, 12)
	}
	for i, curve := range p.curves {
		placer.placeOnCurve(label{lines: []string{stepNumbers(p.steps[i])}, color: p.arrowColor(i), size: 13, bold: true}, curve, outerSide(curve), 9)
	}
	for v, lines := range p.contents {
		if len(lines) > 0 {
			placer.placeNearNode(label{lines: lines, color: foreground, size: 13, badge: true}, l.at[v], l.radius)
		}
	}
	p.labels = placer.labels
	for _, curve := range p.curves {
		p.bounds = p.bounds.union(curve.bounds())
	}
	for _, label := range p.labels {
		p.bounds = p.bounds.union(label.bounds())
	}
}

// stepNumbers formats the numbers of steps, from 1.
func stepNumbers(steps []int) string {
	var numbers []int
	for _, step := range steps {
		numbers = append(numbers, step+1)
	}
	return formatRanges(numbers)
}

// arrowColor returns the color of the arrow's step, or the foreground if the arrow
// has several steps.
func (p *panel) arrowColor(arrow int) string {
	if steps := p.steps[arrow]; len(steps) == 1 {
		return stepColor(steps[0])
	}
	return foreground
}

// edgeOf returns the edge of a directed link. The link is reversed if it leads
// from e.b to e.a.
func edgeOf(l *layout, link int) (e *edge, reversed bool) {
	for i := range l.edges {
		if e := &l.edges[i]; e.forward == link || e.backward == link {
			return e, e.backward == link
		}
	}
	return nil, false
}

// linkCurve returns the curve of an edge in the direction of a link.
func linkCurve(e *edge, reversed bool) bezier {
	if reversed {
		return e.curve.reverse()
	}
	return e.curve
}

func (p *panel) draw(f *networkFigure) {
	l := &f.layout
	f.start("g", "fill", "none", "stroke", "#aeb6c2", "stroke-width", 1.6)
	for _, e := range l.edges {
		f.empty("path", "d", e.curve.path())
	}
	f.end()
	for _, c := range p.congested {
		p.drawCongested(f, c)
	}
	for i, curve := range p.curves {
		p.drawArrow(f, i, curve)
	}
	for v := range l.at {
		f.drawVertex(v) // above arrows that could not avoid it
	}
	for _, label := range p.labels {
		f.drawLabel(label)
	}
}

// drawCongested draws a link in red, with a chevron in the direction of its
// messages.
func (p *panel) drawCongested(f *networkFigure, c congestedLink) {
	e, reversed := edgeOf(&f.layout, c.link)
	curve := linkCurve(e, reversed)
	f.start("g", "class", "congested", "fill", "none", "stroke", red, "stroke-width", 3.4)
	f.element("title", fmt.Sprintf("link %s: %d messages at once", topo.LinkName(f.scene.Result.Config.Topology, c.link), c.messages))
	f.empty("path", "d", curve.path())
	tip, tangent := curve.at(0.68), curve.tangent(0.68)
	back, side := tip.sub(tangent.scale(9)), tangent.normal().scale(6)
	f.empty("path", "d", fmt.Sprintf("M%s L%s L%s", back.add(side), tip, back.sub(side)), "stroke-width", 2.6)
	f.end()
}

// drawVertex draws a processor as a circle with the number of its rank, and a
// switch as a square.
func (f *networkFigure) drawVertex(v int) {
	l, at := &f.layout, f.layout.at[v]
	top := f.scene.Result.Config.Topology
	if v >= l.processors {
		f.start("rect", "class", "switch", "x", at.x-switchSize/2, "y", at.y-switchSize/2, "width", switchSize, "height", switchSize,
			"rx", 2, "fill", "#cfd6e0", "stroke", muted, "stroke-width", 1.2)
		f.element("title", "switch "+top.Name(v))
		f.end()
		return
	}
	rank := f.rankAt(v)
	fill, stroke := subtle, foreground
	if rank < 0 {
		fill, stroke = background, "#aeb6c2"
	} else if rank == rootOf(f.scene) {
		fill = rootFill
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

// binary formats the number of a processor of a hypercube.
func binary(v, bits int) string { return fmt.Sprintf("%0*b", bits, v) }

// node returns the name of a processor in the description.
func (f *networkFigure) node(v int) string {
	if rank := f.rankAt(v); rank >= 0 {
		return fmt.Sprintf("rank %d", rank)
	}
	return fmt.Sprintf("processor %d", v)
}

// rankAt returns the rank on a processor, or -1.
func (f *networkFigure) rankAt(v int) int {
	for rank := range f.scene.Result.Ranks {
		if processorOf(f.scene.Result, rank) == v {
			return rank
		}
	}
	return -1
}

func (p *panel) drawArrow(f *networkFigure, i int, curve bezier) {
	head, shaft := curve.arrowhead()
	color := p.arrowColor(i)
	f.start("g", "class", "arrow")
	f.element("title", fmt.Sprintf("%s to %s in step %s", f.node(p.pairs[i][0]), f.node(p.pairs[i][1]), stepNumbers(p.steps[i])))
	f.empty("path", "d", shaft.path(), "fill", "none", "stroke", color, "stroke-width", 1.9, "stroke-dasharray", "6 3.5")
	f.empty("path", "d", head, "fill", color)
	f.end()
}

// drawLabel draws a label in its box, or with an outline in the background color
// that separates it from lines below.
func (f *networkFigure) drawLabel(l label) {
	if l.badge {
		b := l.bounds()
		f.empty("rect", "x", b.min.x, "y", b.min.y, "width", b.max.x-b.min.x, "height", b.max.y-b.min.y, "rx", 5, "fill", "#e3eefa", "stroke", "#9dbbdc", "stroke-width", 0.8)
	}
	weight := ""
	if l.bold {
		weight = ";font-weight:700"
	}
	style := "font-size:" + number(l.size) + "px;fill:" + l.color + weight
	if !l.badge {
		style += ";paint-order:stroke;stroke:" + background + ";stroke-width:4px;stroke-linejoin:round"
	}
	lineStep := l.size * lineHeight
	y := l.at.y - float64(len(l.lines)-1)*lineStep/2 + l.size*0.36
	for i, line := range l.lines {
		f.text(l.at.x, y+float64(i)*lineStep, line, "text-anchor", "middle", "style", style)
	}
}

// legend explains the symbols of this figure.
func (f *networkFigure) legend() legend {
	k := legend{items: []legendItem{{"arrow", "a message, with the number of its step"}}}
	for _, p := range f.panels {
		if len(p.congested) > 0 {
			k.items = append(k.items, legendItem{"congested", "a link that is asked to carry several messages at once, and how many"})
			break
		}
	}
	if f.layout.processors < len(f.layout.at) {
		k.items = append(k.items, legendItem{"switch", "a switch"})
	}
	for _, p := range f.panels {
		if len(p.contents) > 0 {
			if hasLinePerBlock(f.scene.Parts[0].Schedule) {
				k.items = append(k.items, legendItem{"partial", "2,3: 0+1: blocks 2 and 3 of ranks 0 and 1 combined; R: of all"})
			} else {
				k.items = append(k.items, contentsLegend(f.scene.Parts)...)
			}
			break
		}
	}
	if rootOf(f.scene) >= 0 {
		k.items = append(k.items, legendItem{"root", "the root"})
	}
	k.measure()
	return k
}
