package draw

import (
	"slices"

	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/sim"
)

// rootFill is the fill of the root's circle.
const rootFill = "#ffe9a8"

// A legend explains the symbols of a figure.
type legend struct {
	width float64
	items []legendItem
}

type legendItem struct {
	symbol, text string
}

// contentsLegend explains the labels of the contents of ranks.
func contentsLegend(parts []sim.Part) (items []legendItem) {
	add := func(text string) {
		if item := (legendItem{"partial", text}); !slices.Contains(items, item) {
			items = append(items, item)
		}
	}
	for _, part := range parts {
		switch s := part.Schedule; {
		case s.Collective == sched.Barrier:
			add("0+1: has heard of ranks 0 and 1; 0–3: of ranks 0 to 3")
		case s.Collective.Combines():
			add("0+1: ranks 0 and 1 combined; 0–3: ranks 0 to 3; R: all")
		case s.Collective == sched.AllToAll:
			add("0,1→(2): block 2 of ranks 0 and 1")
		case s.Blocks > 1:
			add("(0–3): these blocks")
		default:
			add("M: the message")
		}
	}
	return items
}

func (i legendItem) width() float64 { return 38 + textWidth(i.text, 12)*0.92 + 18 }

func (k *legend) measure() {
	k.width = 20
	for _, item := range k.items {
		k.width += item.width()
	}
}

func (k legend) draw(s *svg, x, y float64) {
	for _, item := range k.items {
		switch item.symbol {
		case "arrow":
			head, shaft := straight(point{x, y - 4}, point{x + 30, y - 4}).arrowhead()
			s.empty("path", "d", shaft.path(), "fill", "none", "stroke", stepColor(0), "stroke-width", 1.9, "stroke-dasharray", "6 3.5")
			s.empty("path", "d", head, "fill", stepColor(0))
		case "congested":
			s.empty("path", "d", straight(point{x, y - 4}, point{x + 30, y - 4}).path(), "stroke", red, "stroke-width", 3.4)
		case "switch":
			s.empty("rect", "x", x+18, "y", y-10, "width", switchSize, "height", switchSize, "rx", 2, "fill", "#cfd6e0", "stroke", muted, "stroke-width", 1.2)
		case "root":
			s.empty("circle", "cx", x+23, "cy", y-4, "r", 7, "fill", rootFill, "stroke", foreground, "stroke-width", 1.3)
		case "partial", "final":
			fill := partialFill
			if item.symbol == "final" {
				fill = finalFill
			}
			s.empty("rect", "x", x+8, "y", y-12, "width", 24, "height", 15, "rx", 3, "fill", fill, "stroke", muted)
		case "empty":
			s.empty("rect", append([]any{"x", x + 8, "y", y - 12, "width", 24, "height", 15, "rx", 3}, emptyCell[:]...)...)
		}
		s.text(x+38, y, item.text, "style", "font-size:12px;fill:"+muted)
		x += item.width()
	}
}
