package draw

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/chorale-go/chorale/topo"
)

// NetworkOptions say what a picture of a network shows besides its messages.
type NetworkOptions struct {
	Panels bool // a panel for each step, rather than all steps in one
	Blocks bool // panels, and what each rank holds before each step and at the end; of one schedule alone
}

// Network draws a topology with the messages of each step as dashed arrows, and
// beside each the number of its step, from 1 on. Where several messages of a
// step are to cross a link in one direction the link is red, with how many they
// are. Messages that go the same way in several steps share an arrow.
//
// An error says that it would be too large to be read, or is the writer's.
func Network(w io.Writer, s Scene, o NetworkOptions) error {
	if err := recorded(s); err != nil {
		return err
	}
	if err := legible(s.Result.Config.Topology); err != nil {
		return err
	}
	f := &networkFigure{scene: s, plan: layout(s.Result.Config.Topology)}
	if err := f.cut(o); err != nil {
		return err
	}
	return f.draw().writeTo(w)
}

// A networkFigure is a picture of a network under way.
type networkFigure struct {
	scene  Scene
	plan   plan
	panels []*panel
	*svg
}

// A panel is the network at one time.
type panel struct {
	caption string
	pairs   [][2]int   // processors: the ends of the arrows
	steps   [][]int    // of each arrow
	loads   []load     // the congested links
	holds   [][]string // what stands beside each processor
	ways    []curve    // of the arrows
	labels  []label    // beside arrows, links and processors
	bounds  box        // of all of it
}

// A load is a congested link in a panel.
type load struct {
	link, messages int
}

// cut parts the messages among panels.
func (f *networkFigure) cut(o NetworkOptions) error {
	r := f.scene.Result
	if !o.Panels && !o.Blocks {
		all := make([]int, r.Steps)
		for i := range all {
			all[i] = i
		}
		f.panels = []*panel{f.panel("", all...)}
		return f.check()
	}
	for step := range r.Steps {
		if r.PerStep[step].Messages == 0 && step > 0 && !o.Blocks {
			continue // of copies alone, which change nothing here
		}
		f.panels = append(f.panels, f.panel(fmt.Sprintf("Step %d", step+1), step))
	}
	if r.Steps == 0 {
		f.panels = []*panel{f.panel("No step")}
	}
	if err := f.check(); err != nil || !o.Blocks {
		return err
	}
	return f.hold()
}

// panel gathers what the steps show together.
func (f *networkFigure) panel(caption string, steps ...int) *panel {
	p := &panel{caption: caption}
	index := map[[2]int]int{}
	worst := map[int]int{} // of a link
	for _, step := range steps {
		for _, l := range f.scene.Result.PerStep[step].Congested {
			worst[l.Link] = max(worst[l.Link], l.Messages)
		}
	}
	for _, m := range f.scene.Result.Log {
		if !slices.Contains(steps, m.Step) {
			continue
		}
		pair := [2]int{f.seat(m.From), f.seat(m.To)}
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
	for _, w := range f.plan.wires {
		for _, link := range []int{w.there, w.back} {
			if n := worst[link]; n > 0 {
				p.loads = append(p.loads, load{link, n})
			}
		}
	}
	return p
}

// seat returns the processor of a rank.
func (f *networkFigure) seat(rank int) int {
	if place := f.scene.Result.Config.Placement; place != nil {
		return place[rank]
	}
	return rank
}

// hold puts beside each processor what its rank holds before each step, and
// adds a panel for the end.
func (f *networkFigure) hold() error {
	if len(f.scene.Parts) != 1 {
		return fmt.Errorf("block contents of %d schedules beside one network: want a single schedule", len(f.scene.Parts))
	}
	part := f.scene.Parts[0]
	states, err := histories(part.Schedule)
	if err != nil {
		return err
	}
	if len(f.panels) < len(states) {
		f.panels = append(f.panels, f.panel("At the end"))
	}
	for i, state := range states {
		p := f.panels[min(i, len(f.panels)-1)]
		if i < len(states)-1 {
			p.caption = fmt.Sprintf("Before step %d", i+1)
		}
		p.holds = make([][]string, f.plan.processors)
		for rank, held := range state {
			words := contents(part.Schedule, held)
			if celled(part.Schedule) {
				words = brief(words)
			}
			if len(words) > 4 || len(strings.Join(words, "")) > 60 {
				return fmt.Errorf("contents of %d blocks beside the nodes of a network: want a picture of blocks alone", part.Schedule.Blocks)
			}
			p.holds[f.seat(partRank(part.Ranks, rank))] = words
		}
	}
	return nil
}

// check refuses more arrows than anyone could tell apart.
func (f *networkFigure) check() error {
	arrows := 0
	for _, p := range f.panels {
		if n := len(p.pairs); n > maxArrows && p.caption == "" {
			return fmt.Errorf("a picture of %d arrows: want at most %d, as with a panel for each step", n, maxArrows)
		} else if n > maxArrows {
			return fmt.Errorf("a picture of %d arrows in one step: want at most %d", n, maxArrows)
		}
		arrows += len(p.pairs)
	}
	if nodes := len(f.panels) * len(f.plan.at); arrows > maxInAll || nodes > maxInAll {
		return fmt.Errorf("a picture of %d panels with %d arrows and %d nodes in all: want at most %d of each, as with fewer ranks", len(f.panels), arrows, nodes, maxInAll)
	}
	return nil
}

// partRank returns the rank of the whole that is a part's.
func partRank(ranks []int, rank int) int {
	if ranks == nil {
		return rank
	}
	return ranks[rank]
}

const (
	headRoom   = 64.0 // above the panels, for title and subtitle
	footRoom   = 40.0 // below them, for what the signs mean
	panelGap   = 18.0
	wideEnough = 1400.0
)

// draw lays out the panels in rows.
func (f *networkFigure) draw() *svg {
	var cell box
	for i, p := range f.panels {
		p.arrange(f)
		if i == 0 {
			cell = p.bounds
		}
		cell = cell.join(p.bounds)
	}
	cell.min, cell.max = cell.min.minus(point{16, 12}), cell.max.plus(point{16, 12})
	caption := 0.0
	if len(f.panels) > 1 {
		caption = 26
	}
	size := point{cell.max.x - cell.min.x, cell.max.y - cell.min.y + caption}
	columns := columnsFor(len(f.panels), size)
	rows := (len(f.panels) + columns - 1) / columns
	legend := f.legend()
	width := max(float64(columns)*(size.x+panelGap)-panelGap, textWidth(headline(f.scene), 18)+40, textWidth(byline(f.scene), 13)+40, legend.width)
	f.svg = newSVG("network", headline(f.scene), f.describe(), width, headRoom+float64(rows)*(size.y+panelGap)-panelGap+footRoom)
	f.text(20, 30, headline(f.scene), "style", "font-size:18px;font-weight:600")
	f.text(20, 50, byline(f.scene), "style", "font-size:13px;fill:"+faint)
	inset := (width - float64(columns)*(size.x+panelGap) + panelGap) / 2
	for i, p := range f.panels {
		at := point{inset + float64(i%columns)*(size.x+panelGap), headRoom + float64(i/columns)*(size.y+panelGap)}
		if len(f.panels) > 1 {
			f.empty("rect", "x", at.x+4, "y", at.y, "width", size.x-8, "height", size.y, "rx", 8, "fill", "none", "stroke", "#d9dee6")
			f.text(at.x+18, at.y+22, p.caption, "style", "font-weight:600")
		}
		f.start("g", "transform", "translate("+at.plus(point{0, caption}).minus(cell.min).String()+")")
		p.draw(f)
		f.end()
	}
	legend.draw(f.svg, 20, headRoom+float64(rows)*(size.y+panelGap)-panelGap+24)
	return f.svg
}

// columnsFor returns how many panels stand side by side: what makes the figure
// most like a page that lies down, and no wider than one.
func columnsFor(n int, size point) int {
	best, least := 1, math.Inf(1)
	for columns := 1; columns <= n; columns++ {
		rows := (n + columns - 1) / columns
		width, height := float64(columns)*size.x, float64(rows)*size.y
		odd := math.Abs(math.Log(width/height/1.5)) + 0.4*float64(rows*columns-n)
		if width > wideEnough && columns > 1 {
			odd += width / wideEnough * 4
		}
		if odd < least-1e-9 {
			best, least = columns, odd
		}
	}
	return best
}

// describe says in words all that the figure shows.
func (f *networkFigure) describe() string {
	r := f.scene.Result
	var b strings.Builder
	fmt.Fprintf(&b, "%s.", byline(f.scene))
	if r.Config.Placement != nil {
		b.WriteString(" Rank on processor:")
		for rank := range r.Ranks {
			fmt.Fprintf(&b, " %d on %d", rank, f.seat(rank))
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
		for v, words := range p.holds {
			if len(words) > 0 {
				all = append(all, fmt.Sprintf("%s holds %s", f.node(v), strings.Join(words, ", ")))
			}
		}
		if len(all) > 0 {
			fmt.Fprintf(&b, " %s: %s.", p.caption, strings.Join(all, "; "))
		}
	}
	return b.String()
}
