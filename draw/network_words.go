package draw

import (
	"fmt"
	"slices"
	"strings"

	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/sim"
)

// rootGround is the inside of the root's circle.
const rootGround = "#ffe9a8"

// headline returns a scene's title, or who plays what.
func headline(s Scene) string {
	if s.Title != "" {
		return s.Title
	}
	var names []string
	for _, part := range s.Parts {
		name := part.Schedule.Collective.String() + " " + part.Schedule.Algorithm
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", then ")
}

// byline says where a scene takes place, and how much happens.
func byline(s Scene) string {
	r := s.Result
	words := fmt.Sprintf("%v, %s, %s, %s", r.Config.Topology, amount(r.Ranks, "rank"), amount(busySteps(r), "step"), amount(r.Messages, "message"))
	if r.MaxLinkLoad > 1 {
		words += fmt.Sprintf("; up to %d messages of a step want the same link", r.MaxLinkLoad)
	}
	return words
}

// amount writes "1 step" and "2 steps".
func amount(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// A key says what the signs of a figure mean.
type key struct {
	width float64
	items []keyItem
}

type keyItem struct {
	sign, words string
}

// meaning says how to read what the ranks of some parts hold.
func meaning(parts []sim.Part) (items []keyItem) {
	add := func(words string) {
		if item := (keyItem{"part", words}); !slices.Contains(items, item) {
			items = append(items, item)
		}
	}
	for _, part := range parts {
		switch s := part.Schedule; {
		case s.Collective == sched.Barrier:
			add("0.1: has heard of ranks 0 and 1")
		case s.Collective.Combines():
			add("0.1: of ranks 0 and 1 together; R: of all")
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

func (i keyItem) width() float64 { return 38 + textWidth(i.words, 12)*0.92 + 18 }

func (k *key) measure() {
	k.width = 20
	for _, item := range k.items {
		k.width += item.width()
	}
}

func (k key) draw(s *svg, x, y float64) {
	for _, item := range k.items {
		switch item.sign {
		case "arrow":
			head, shaft := straight(point{x, y - 4}, point{x + 30, y - 4}).head()
			s.empty("path", "d", shaft.path(), "fill", "none", "stroke", hue(0), "stroke-width", 1.9, "stroke-dasharray", "6 3.5")
			s.empty("path", "d", head, "fill", hue(0))
		case "red":
			s.empty("path", "d", straight(point{x, y - 4}, point{x + 30, y - 4}).path(), "stroke", red, "stroke-width", 3.4)
		case "switch":
			s.empty("rect", "x", x+18, "y", y-10, "width", switchSize, "height", switchSize, "rx", 2, "fill", "#cfd6e0", "stroke", faint, "stroke-width", 1.2)
		case "root":
			s.empty("circle", "cx", x+23, "cy", y-4, "r", 7, "fill", rootGround, "stroke", ink, "stroke-width", 1.3)
		case "part", "done":
			ground := partGround
			if item.sign == "done" {
				ground = doneGround
			}
			s.empty("rect", "x", x+8, "y", y-12, "width", 24, "height", 15, "rx", 3, "fill", ground, "stroke", faint)
		}
		s.text(x+38, y, item.words, "style", "font-size:12px;fill:"+faint)
		x += item.width()
	}
}

// busySteps counts the steps that have a message. The last may be of copies
// alone, which a network does not see.
func busySteps(r *sim.Result) (n int) {
	for _, s := range r.PerStep {
		if s.Messages > 0 {
			n++
		}
	}
	return n
}
