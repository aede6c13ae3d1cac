package draw

import (
	"fmt"
	"slices"
	"strings"

	"github.com/chorale-go/chorale/sim"
	"github.com/chorale-go/chorale/topo"
)

// An animation is the data of the page's script: the route of every message, and
// its times.
type animation struct {
	Ranks    int                `json:"ranks"`
	Time     float64            `json:"time"`
	Steps    []animationStep    `json:"steps"`
	Messages []animationMessage `json:"messages"` // by step
	Links    []string           `json:"links"`    // names of the directed links that carry messages
	Contents [][]string         `json:"contents"` // by state and rank, see [stateLines]; null if not shown

	linkIDs []int // the topology's ids of Links, ascending
}

type animationStep struct {
	Start float64         `json:"start"`
	End   float64         `json:"end"`
	First int             `json:"first"` // its messages are Messages[First:Last]
	Last  int             `json:"last"`
	Loads []animationLoad `json:"loads"` // heaviest first
}

// An animationLoad is how many messages of a step cross a link.
type animationLoad struct {
	Link     int `json:"link"` // an index in animation.Links
	Messages int `json:"messages"`
}

type animationMessage struct {
	From     int     `json:"from"`
	To       int     `json:"to"`
	Words    int     `json:"words"`
	Combine  bool    `json:"combine"`
	Critical bool    `json:"critical"`
	Ready    float64 `json:"ready"`
	Start    float64 `json:"start"`
	End      float64 `json:"end"`
	Route    []int   `json:"route"` // indices in animation.Links
}

// newAnimation finds the route of every message of the log.
func newAnimation(s Scene) *animation {
	r, t := s.Result, s.Result.Config.Topology
	routes := make([][]int, len(r.Log))
	var ids []int
	for i, m := range r.Log {
		routes[i] = topo.Route(t, processorOf(r, m.From), processorOf(r, m.To))
		ids = append(ids, routes[i]...)
	}
	slices.Sort(ids)
	a := &animation{Ranks: r.Ranks, Time: r.Time, linkIDs: slices.Compact(ids)}
	a.Steps, a.Messages, a.Links = []animationStep{}, []animationMessage{}, []string{} // never null in JSON
	for _, id := range a.linkIDs {
		a.Links = append(a.Links, r.Name(id))
	}
	critical := make(map[sim.Message]bool, len(r.Path))
	for _, leg := range r.Path {
		critical[leg.Message] = true
	}
	for i, m := range r.Log {
		a.Messages = append(a.Messages, animationMessage{
			From: m.From, To: m.To, Words: m.Words, Combine: m.Combine, Critical: critical[m],
			Ready: m.Ready, Start: m.Start, End: m.End, Route: a.linkIndices(routes[i]),
		})
	}
	a.addSteps(r)
	return a
}

// linkIndices returns the indices in a.Links of the links of a route.
func (a *animation) linkIndices(route []int) []int {
	out := make([]int, len(route))
	for i, id := range route {
		out[i], _ = slices.BinarySearch(a.linkIDs, id)
	}
	return out
}

// addSteps assigns the messages to their steps and counts the load of each link.
// A step without messages begins and ends when the step before it ends.
func (a *animation) addSteps(r *sim.Result) {
	next, end := 0, 0.0
	for i, step := range r.PerStep {
		s := animationStep{Start: step.Start, End: step.End, First: next}
		for next < len(r.Log) && r.Log[next].Step == i {
			next++
		}
		s.Last = next
		if s.First == s.Last {
			s.Start, s.End = end, end
		}
		end = s.End
		s.Loads = a.linkLoads(a.Messages[s.First:s.Last])
		a.Steps = append(a.Steps, s)
	}
}

func (a *animation) linkLoads(messages []animationMessage) []animationLoad {
	count := make([]int, len(a.Links))
	for _, m := range messages {
		for _, l := range m.Route {
			count[l]++
		}
	}
	loads := []animationLoad{} // never null in JSON
	for l, n := range count {
		if n > 0 {
			loads = append(loads, animationLoad{l, n})
		}
	}
	slices.SortStableFunc(loads, func(a, b animationLoad) int { return b.Messages - a.Messages })
	return loads
}

// congested lists the links that carry more than one message of a step.
func (a *animation) congested(step int) string {
	var names []string
	for _, l := range a.Steps[step].Loads {
		if l.Messages > 1 {
			names = append(names, fmt.Sprintf("%s (%d)", a.Links[l.Link], l.Messages))
		}
	}
	return strings.Join(names, ", ")
}

// describe returns the text alternative of a step's figure.
func (a *animation) describe(step int) string {
	s := a.Steps[step]
	var names []string
	for _, m := range a.Messages[s.First:s.Last] {
		names = append(names, messageName(m.From, m.To))
	}
	text := fmt.Sprintf("Step %d of %d: ", step+1, len(a.Steps))
	switch n := len(names); {
	case n == 0:
		return text + "no messages."
	case n > maxListed:
		text += strings.Join(names[:maxListed], ", ") + fmt.Sprintf(" and %d more.", n-maxListed)
	default:
		text += strings.Join(names, ", ") + "."
	}
	if c := a.congested(step); c != "" {
		text += " Congested links, with the messages that they are asked to carry: " + c + "."
	}
	return text
}
