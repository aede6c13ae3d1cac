package draw

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/chorale-go/chorale/topo"
)

// NetworkOptions select what [Network] shows besides messages.
type NetworkOptions struct {
	Panels bool // one panel per step, instead of one panel for all steps
	Blocks bool // one panel per step and one for the end, with the contents of each rank; the scene must have a single schedule
}

// Network draws a topology with the messages of each step as dashed arrows, each
// with the number of its step, from 1. A directed link that several messages of
// a step cross is red, with the number of messages. Messages between the same
// ranks in several steps share an arrow.
//
// Network returns an error if the scene has no log, if the picture would be too
// large to be read (more than 64 processors, 32 of a hypercube, 128 switches, 400
// arrows in a panel or 2000 in all), or if w fails.
func Network(w io.Writer, s Scene, o NetworkOptions) error {
	if err := checkRecorded(s); err != nil {
		return err
	}
	if err := checkReadable(s.Result.Config.Topology); err != nil {
		return err
	}
	f := &networkFigure{scene: s, layout: newLayout(s.Result.Config.Topology)}
	if err := f.addPanels(o); err != nil {
		return err
	}
	return f.draw().writeTo(w)
}

// A networkFigure is a picture of a network while it is drawn.
type networkFigure struct {
	scene  Scene
	layout layout
	panels []*panel
	*svg
}

// A panel is the network during one step, or during all steps.
type panel struct {
	caption   string
	pairs     [][2]int        // of processors, one for each arrow
	steps     [][]int         // by arrow
	congested []congestedLink // in the order of the links
	contents  [][]string      // lines beside each processor
	curves    []bezier        // by arrow
	labels    []label         // beside arrows, links and processors
	bounds    rect            // of everything drawn
}

// A congestedLink is a directed link with more than one message of a step.
type congestedLink struct {
	link, messages int
}

// addPanels makes the panels, and assigns the messages to them.
func (f *networkFigure) addPanels(o NetworkOptions) error {
	r := f.scene.Result
	if !o.Panels && !o.Blocks {
		all := make([]int, r.Steps)
		for i := range all {
			all[i] = i
		}
		f.panels = []*panel{f.newPanel("", all...)}
		return f.checkSize()
	}
	for step := range r.Steps {
		if r.PerStep[step].Messages == 0 && step > 0 && !o.Blocks {
			continue // the step has only local copies
		}
		f.panels = append(f.panels, f.newPanel(fmt.Sprintf("Step %d", step+1), step))
	}
	if r.Steps == 0 {
		f.panels = []*panel{f.newPanel("No step")}
	}
	if err := f.checkSize(); err != nil || !o.Blocks {
		return err
	}
	return f.addContents()
}

// newPanel makes a panel of the given steps.
func (f *networkFigure) newPanel(caption string, steps ...int) *panel {
	p := &panel{caption: caption}
	index := map[[2]int]int{}
	maxLoad := map[int]int{} // by link
	for _, step := range steps {
		for _, l := range f.scene.Result.PerStep[step].Congested {
			maxLoad[l.Link] = max(maxLoad[l.Link], l.Messages)
		}
	}
	for _, m := range f.scene.Result.Log {
		if !slices.Contains(steps, m.Step) {
			continue
		}
		pair := [2]int{processorOf(f.scene.Result, m.From), processorOf(f.scene.Result, m.To)}
		i, ok := index[pair]
		if !ok {
			i = len(p.pairs)
			index[pair] = i
			p.pairs = append(p.pairs, pair)
			p.steps = append(p.steps, nil)
		}
		if !slices.Contains(p.steps[i], m.Step) {
			p.steps[i] = append(p.steps[i], m.Step)
		}
	}
	for _, e := range f.layout.edges {
		for _, link := range []int{e.forward, e.backward} {
			if n := maxLoad[link]; n > 0 {
				p.congested = append(p.congested, congestedLink{link, n})
			}
		}
	}
	return p
}

// addContents puts the contents of each rank beside its processor, before each
// step, and adds a panel for the end.
func (f *networkFigure) addContents() error {
	if len(f.scene.Parts) != 1 {
		return fmt.Errorf("block contents of %d schedules beside one network: want a single schedule", len(f.scene.Parts))
	}
	part := f.scene.Parts[0]
	states, err := replay(part.Schedule)
	if err != nil {
		return err
	}
	if len(f.panels) < len(states) {
		f.panels = append(f.panels, f.newPanel("At the end"))
	}
	for i, state := range states {
		p := f.panels[min(i, len(f.panels)-1)]
		if i < len(states)-1 {
			p.caption = fmt.Sprintf("Before step %d", i+1)
		}
		p.contents = make([][]string, f.layout.processors)
		for rank, c := range state {
			lines := contentLines(part.Schedule, c)
			if hasLinePerBlock(part.Schedule) {
				lines = groupedByBlocks(lines)
			}
			if !fitsBadge(lines) {
				return fmt.Errorf("contents of %d blocks beside the nodes of a network: want a picture of blocks alone", part.Schedule.Blocks)
			}
			p.contents[processorOf(f.scene.Result, globalRank(part.Ranks, rank))] = lines
		}
	}
	return nil
}

// checkSize returns an error if the figure has too many arrows or nodes to be
// read.
func (f *networkFigure) checkSize() error {
	arrows := 0
	for _, p := range f.panels {
		if n := len(p.pairs); n > maxArrows && p.caption == "" {
			return fmt.Errorf("a picture of %d arrows: want at most %d, as with a panel for each step", n, maxArrows)
		} else if n > maxArrows {
			return fmt.Errorf("a picture of %d arrows in one step: want at most %d", n, maxArrows)
		}
		arrows += len(p.pairs)
	}
	if nodes := len(f.panels) * len(f.layout.at); arrows > maxTotal || nodes > maxTotal {
		return fmt.Errorf("a picture of %d panels with %d arrows and %d nodes in all: want at most %d of each, as with fewer ranks", len(f.panels), arrows, nodes, maxTotal)
	}
	return nil
}

// draw arranges the panels in rows and columns.
func (f *networkFigure) draw() *svg {
	var cell rect
	for i, p := range f.panels {
		p.arrange(f)
		if i == 0 {
			cell = p.bounds
		}
		cell = cell.union(p.bounds)
	}
	cell.min, cell.max = cell.min.sub(point{16, 12}), cell.max.add(point{16, 12})
	caption := 0.0
	if len(f.panels) > 1 {
		caption = 26
	}
	legend := f.legend()
	grid := newPanelGrid(len(f.panels), point{cell.max.x - cell.min.x, cell.max.y - cell.min.y + caption})
	width := max(grid.width(), legend.width)
	head := newHeading(figureInset, 30, 18, titleOf(f.scene), subtitleOf(f.scene), width)
	width = max(width, head.width)
	f.svg = newSVG("network", titleOf(f.scene), f.describe(), width, headerHeight+grid.height()+footerHeight+head.more)
	head.draw(f.svg)
	for i, p := range f.panels {
		at := grid.draw(f.svg, i, width)
		if len(f.panels) > 1 {
			f.text(at.x+14, at.y+22, p.caption, "style", "font-weight:600")
		}
		f.start("g", "transform", "translate("+at.add(point{0, caption}).sub(cell.min).String()+")")
		p.draw(f)
		f.end()
	}
	legend.draw(f.svg, figureInset, headerHeight+grid.height()+24)
	return f.svg
}

// describe returns the text alternative of the figure.
func (f *networkFigure) describe() string {
	r := f.scene.Result
	var b strings.Builder
	fmt.Fprintf(&b, "%s.", subtitleOf(f.scene))
	if r.Config.Placement != nil {
		b.WriteString(" Rank on processor:")
		for rank := range r.Ranks {
			fmt.Fprintf(&b, " %d on %d", rank, processorOf(f.scene.Result, rank))
		}
		b.WriteString(".")
	}
	log := r.Log
	for step := range r.Steps {
		var messages []string
		for ; len(log) > 0 && log[0].Step == step; log = log[1:] {
			messages = append(messages, fmt.Sprintf("%d→%d", log[0].From, log[0].To))
		}
		fmt.Fprintf(&b, " Step %d: %s.", step+1, strings.Join(messages, ", "))
		for _, l := range r.PerStep[step].Congested {
			fmt.Fprintf(&b, " Link %s is asked to carry %d messages.", topo.LinkName(r.Config.Topology, l.Link), l.Messages)
		}
	}
	for _, p := range f.panels {
		var all []string
		for v, lines := range p.contents {
			if len(lines) > 0 {
				all = append(all, fmt.Sprintf("%s holds %s", f.node(v), strings.Join(lines, ", ")))
			}
		}
		if len(all) > 0 {
			fmt.Fprintf(&b, " %s: %s.", p.caption, strings.Join(all, "; "))
		}
	}
	return b.String()
}
