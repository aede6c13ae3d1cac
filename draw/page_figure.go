package draw

import (
	"fmt"
	"strconv"

	"github.com/chorale-go/chorale/sim"
	"github.com/chorale-go/chorale/topo"
)

// A pageFigure is the figure of a page for the template: the network, the paths
// of its links, and a frame for each step. Lengths are formatted for SVG.
type pageFigure struct {
	ViewBox     string
	Width       string // in pixels, on narrow screens; else the figure is as wide as the page
	Wide        bool   // more than twice as wide as high
	Description string
	Edges       []string // paths of the full-duplex links
	LinkPaths   []string // of the directed links, as in animation.Links
	Nodes       []pageNode
	Steps       []pageFrame
	End         *pageFrame // the contents of ranks at the end; nil if not shown
	Renumbered  bool       // some rank runs on a processor of another number
}

// A pageNode is a processor or a switch.
type pageNode struct {
	X, Y   string
	Class  string    // rank, root, idle or switch
	Label  string    // the rank on a processor, if any; the name of a switch
	Binary string    // the processor's number, on a hypercube
	Below  string    // the name that links use, where Label does not show it
	Rect   *pageRect // of a switch, around its center
}

type pageRect struct{ X, Y, Width, Height string }

func newPageRect(b rect) pageRect {
	return pageRect{number(b.min.x), number(b.min.y), number(b.max.x - b.min.x), number(b.max.y - b.min.y)}
}

// A pageFrame is the figure of one step.
type pageFrame struct {
	ID     string
	Loads  []frameLoad
	Arrows []frameArrow
	Badges []pageBadge
}

// A pageBadge shows the contents of a rank beside its node.
type pageBadge struct {
	pageRect
	Lines []badgeLine
}

type badgeLine struct{ X, Y, Text string }

// A frameLoad is a directed link that carries messages of the step.
type frameLoad struct {
	Path      string
	Name      string
	Messages  int
	Congested bool
	X, Y      string // the position of the number of messages
}

// A frameArrow leads from sender to receiver around the nodes between them.
type frameArrow struct {
	Path, Head string
	Critical   bool
}

// The two directions of a full-duplex link are drawn side by side, each to the
// right of the middle in its direction. Lengths are in pixels.
const (
	linkOffset    = 4.0  // of a directed link from the middle
	loadOffset    = 9.0  // of its load from the link
	figureMargin  = 8.0  // around arrows and badges
	badgeFontSize = 13.0 // as in page.css
	nameFontSize  = 10.5 // as in page.css
	nameBelowNode = 30.0 // from the center of a node to the baseline of its name
)

// A pageFigureBuilder draws the network and the frames of a page's figure.
type pageFigureBuilder struct {
	pageFigure
	result     *sim.Result
	animation  *animation
	layout     layout
	linkCurves []bezier   // as in animation.Links
	arrows     [][]bezier // by step, one for each message
	nodeNames  []label    // below the nodes
	bounds     rect       // of everything drawn
}

// newPageFigure draws the network and all frames. The states are those of
// [stateLines], or nil.
func newPageFigure(s Scene, a *animation, states [][][]string) pageFigure {
	t := s.Result.Config.Topology
	b := &pageFigureBuilder{result: s.Result, animation: a, layout: newLayout(t)}
	b.Description = fmt.Sprintf("The network %v: processors %d, switches %d, links %d.", t, t.Processors(), t.Switches(), t.LinkCount())
	b.bounds = rect{max: point{b.layout.width, b.layout.height}}
	b.addLinks()
	b.addNodes(t, rootOf(s))
	b.routeArrows()
	if !fitsBesideNodes(states) {
		states = make([][][]string, len(a.Steps))
	} else {
		b.End = &pageFrame{ID: "step-end", Badges: b.placeBadges(b.labelPlacer(nil), states[len(a.Steps)])}
	}
	for i := range a.Steps {
		b.Steps = append(b.Steps, b.drawStep(i, states[i]))
	}
	b.setViewBox()
	return b.pageFigure
}

// addLinks draws the full-duplex links, and finds the curves of the directed
// links that carry messages.
func (b *pageFigureBuilder) addLinks() {
	curves := make(map[int]bezier, 2*len(b.layout.edges)) // by directed link
	for _, e := range b.layout.edges {
		b.Edges = append(b.Edges, e.curve.path())
		curves[e.forward] = e.curve.offset(-linkOffset)
		curves[e.backward] = e.curve.reverse().offset(-linkOffset)
	}
	for _, id := range b.animation.linkIDs {
		b.linkCurves = append(b.linkCurves, curves[id])
		b.LinkPaths = append(b.LinkPaths, curves[id].path())
	}
}

// addNodes adds a node for every vertex. If ranks and processors are numbered
// differently, the processor's name stands below the node.
func (b *pageFigureBuilder) addNodes(t topo.Topology, root int) {
	rankAt := make(map[int]int, b.result.Ranks)
	for r := range b.result.Ranks {
		rankAt[processorOf(b.result, r)] = r
		b.Renumbered = b.Renumbered || processorOf(b.result, r) != r
	}
	for v, at := range b.layout.at {
		n := pageNode{X: number(at.x), Y: number(at.y), Class: "idle"}
		rank, hasRank := rankAt[v]
		switch {
		case v >= b.layout.processors:
			n.Class = "switch"
		case hasRank && rank == root:
			n.Class = "root"
		case hasRank:
			n.Class = "rank"
		}
		if hasRank {
			n.Label = strconv.Itoa(rank)
		}
		if b.layout.bits > 0 && v < b.layout.processors {
			n.Binary = binary(v, b.layout.bits)
		}
		switch {
		case n.Class == "switch":
			n.Label = t.Name(v)
			r := newPageRect(rectAround(point{}, max(textWidth(n.Label, nameFontSize)+4, 2*nameFontSize), 1.6*nameFontSize))
			n.Rect = &r
		case b.Renumbered || !hasRank:
			n.Below = t.Name(v)
			b.nodeNames = append(b.nodeNames, label{at: at.add(point{0, nameBelowNode - nameFontSize/3}), lines: []string{n.Below}, size: nameFontSize})
		}
		b.Nodes = append(b.Nodes, n)
	}
}

// routeArrows finds the curves of all arrows. Steps with the same senders and
// receivers, as on a ring, share them.
func (b *pageFigureBuilder) routeArrows() {
	cache := map[string][]bezier{}
	for _, s := range b.animation.Steps {
		var pairs [][2]int
		for _, m := range b.animation.Messages[s.First:s.Last] {
			pairs = append(pairs, [2]int{processorOf(b.result, m.From), processorOf(b.result, m.To)})
		}
		key := fmt.Sprint(pairs)
		if _, ok := cache[key]; !ok {
			cache[key] = b.layout.arrowCurves(pairs)
		}
		b.arrows = append(b.arrows, cache[key])
	}
}

// include extends the figure to a rectangle with a margin around it.
func (b *pageFigureBuilder) include(r rect) {
	gap := point{figureMargin, figureMargin}
	b.bounds = b.bounds.union(rect{r.min.sub(gap), r.max.add(gap)})
}

// setViewBox sizes the figure to show the network, the arrows and the badges.
func (b *pageFigureBuilder) setViewBox() {
	for _, arrows := range b.arrows {
		for _, arrow := range arrows {
			b.include(arrow.bounds())
		}
	}
	view := newPageRect(b.bounds)
	extent := b.bounds.max.sub(b.bounds.min)
	b.ViewBox = view.X + " " + view.Y + " " + view.Width + " " + view.Height
	b.Width = number(0.8 * extent.x)
	b.Wide = extent.x > 2*extent.y && extent.x > 500
}

// labelPlacer returns a placer of labels among the nodes, their names and the
// arrows.
func (b *pageFigureBuilder) labelPlacer(arrows []bezier) *labelPlacer {
	placer := newLabelPlacer(&b.layout, arrows)
	for _, name := range b.nodeNames {
		placer.add(name, name.at)
	}
	return placer
}

// drawStep draws the frame of one step.
func (b *pageFigureBuilder) drawStep(i int, contents [][]string) pageFrame {
	a, s := b.animation, b.animation.Steps[i]
	frame := pageFrame{ID: "step-" + strconv.Itoa(i+1)}
	placer := b.labelPlacer(b.arrows[i])
	for _, l := range s.Loads {
		at := b.linkCurves[l.Link].offset(-loadOffset).at(0.5)
		frame.Loads = append(frame.Loads, frameLoad{
			Path: b.LinkPaths[l.Link], Name: a.Links[l.Link], Messages: l.Messages, Congested: l.Messages > 1,
			X: number(at.x), Y: number(at.y),
		})
		if l.Messages > 1 {
			placer.add(label{lines: []string{strconv.Itoa(l.Messages)}, size: 13, badge: true}, at)
		}
	}
	for k, m := range a.Messages[s.First:s.Last] {
		head, shaft := b.arrows[i][k].arrowhead()
		frame.Arrows = append(frame.Arrows, frameArrow{Path: shaft.path(), Head: head, Critical: m.Critical})
	}
	frame.Badges = b.placeBadges(placer, contents)
	return frame
}

// placeBadges puts the contents of each rank beside its node, where they cover
// least.
func (b *pageFigureBuilder) placeBadges(placer *labelPlacer, contents [][]string) (all []pageBadge) {
	for rank, lines := range contents {
		if len(lines) == 0 {
			continue
		}
		at := b.layout.at[processorOf(b.result, rank)]
		placer.placeNearNode(label{lines: lines, size: badgeFontSize, badge: true}, at, b.layout.radius)
		l := placer.labels[len(placer.labels)-1]
		b.include(l.bounds())
		badge := pageBadge{pageRect: newPageRect(l.bounds())}
		y := l.at.y - float64(len(lines)-1)*badgeFontSize*lineHeight/2 + badgeFontSize*0.36
		for i, line := range lines {
			badge.Lines = append(badge.Lines, badgeLine{number(l.at.x), number(y + float64(i)*badgeFontSize*lineHeight), line})
		}
		all = append(all, badge)
	}
	return all
}
