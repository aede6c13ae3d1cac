package draw

import (
	"fmt"
	"slices"
	"strings"

	"github.com/chorale-go/chorale/sim"
	"github.com/chorale-go/chorale/topo"
)

// A film is what a page's script reads: which message is where, and when.
type film struct {
	Ranks    int           `json:"ranks"`
	Time     float64       `json:"time"`
	Steps    []filmStep    `json:"steps"`
	Messages []filmMessage `json:"messages"` // by step
	Links    []string      `json:"links"`    // names of the directed links that carry messages
	Holds    [][]string    `json:"holds"`    // what each rank holds before each step and at the end; or nothing

	ids []int // of Links, in ascending order
}

type filmStep struct {
	Start float64    `json:"start"`
	End   float64    `json:"end"`
	First int        `json:"first"` // its messages are those from here to Last
	Last  int        `json:"last"`
	Loads []filmLoad `json:"loads"` // heaviest first
}

// A filmLoad is a link and how many messages it is asked to carry in a step.
type filmLoad struct {
	Link     int `json:"link"` // its place in film.Links
	Messages int `json:"messages"`
}

type filmMessage struct {
	From     int     `json:"from"`
	To       int     `json:"to"`
	Words    int     `json:"words"`
	Combine  bool    `json:"combine"`
	Critical bool    `json:"critical"`
	Ready    float64 `json:"ready"`
	Start    float64 `json:"start"`
	End      float64 `json:"end"`
	Route    []int   `json:"route"` // places in film.Links
}

// newFilm lays every message of the log on its route.
func newFilm(s Scene) *film {
	r, t := s.Result, s.Result.Config.Topology
	routes := make([][]int, len(r.Log))
	var ids []int
	for i, m := range r.Log {
		routes[i] = topo.Route(t, seatOf(r, m.From), seatOf(r, m.To))
		ids = append(ids, routes[i]...)
	}
	slices.Sort(ids)
	f := &film{Ranks: r.Ranks, Time: r.Time, ids: slices.Compact(ids)}
	for _, id := range f.ids {
		f.Links = append(f.Links, r.Name(id))
	}
	critical := make(map[sim.Message]bool, len(r.Path))
	for _, leg := range r.Path {
		critical[leg.Message] = true
	}
	for i, m := range r.Log {
		f.Messages = append(f.Messages, filmMessage{
			From: m.From, To: m.To, Words: m.Words, Combine: m.Combine, Critical: critical[m],
			Ready: m.Ready, Start: m.Start, End: m.End, Route: f.places(routes[i]),
		})
	}
	f.cut(r)
	return f
}

// places turns ids of links into places in f.Links.
func (f *film) places(route []int) []int {
	out := make([]int, len(route))
	for i, id := range route {
		out[i], _ = slices.BinarySearch(f.ids, id)
	}
	return out
}

// cut divides the messages among the steps, and counts what these ask of links.
// A step without messages stands where the one before it ends.
func (f *film) cut(r *sim.Result) {
	next, end := 0, 0.0
	for i, step := range r.PerStep {
		s := filmStep{Start: step.Start, End: step.End, First: next}
		for next < len(r.Log) && r.Log[next].Step == i {
			next++
		}
		s.Last = next
		if s.First == s.Last {
			s.Start, s.End = end, end
		}
		end = s.End
		s.Loads = f.loads(f.Messages[s.First:s.Last])
		f.Steps = append(f.Steps, s)
	}
}

func (f *film) loads(messages []filmMessage) []filmLoad {
	count := make([]int, len(f.Links))
	for _, m := range messages {
		for _, l := range m.Route {
			count[l]++
		}
	}
	all := []filmLoad{} // never null in JSON
	for l, n := range count {
		if n > 0 {
			all = append(all, filmLoad{l, n})
		}
	}
	slices.SortStableFunc(all, func(a, b filmLoad) int { return b.Messages - a.Messages })
	return all
}

// congested names the links of a step that are asked to carry more than one
// message.
func (f *film) congested(step int) string {
	var names []string
	for _, l := range f.Steps[step].Loads {
		if l.Messages > 1 {
			names = append(names, fmt.Sprintf("%s (%d)", f.Links[l.Link], l.Messages))
		}
	}
	return strings.Join(names, ", ")
}

// spoken is how many messages a description names.
const spoken = 64

// describe says in words what a step's figure shows.
func (f *film) describe(step int) string {
	s := f.Steps[step]
	var names []string
	for _, m := range f.Messages[s.First:s.Last] {
		names = append(names, messageName(m.From, m.To))
	}
	text := fmt.Sprintf("Step %d of %d: ", step+1, len(f.Steps))
	switch n := len(names); {
	case n == 0:
		return text + "no messages."
	case n > spoken:
		text += strings.Join(names[:spoken], ", ") + fmt.Sprintf(" and %d more.", n-spoken)
	default:
		text += strings.Join(names, ", ") + "."
	}
	if c := f.congested(step); c != "" {
		text += " Congested links, with the messages that they are asked to carry: " + c + "."
	}
	return text
}

// seatOf returns the processor of a rank.
func seatOf(r *sim.Result, rank int) int {
	if r.Config.Placement == nil {
		return rank
	}
	return r.Config.Placement[rank]
}
