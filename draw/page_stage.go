package draw

import (
	"fmt"
	"strconv"

	"github.com/chorale-go/chorale/sim"
	"github.com/chorale-go/chorale/topo"
)

// A stage is a page's figure: the network, the ways that messages take on it,
// and for each step a frame of what happens there.
type stage struct {
	View  string // the viewBox
	Width string
	Wide  bool   // much wider than high
	What  string // in words
	Wires []string
	Ways  []string // one for each of film.Links
	Nodes []stageNode

	result *sim.Result
	plan   plan
	ways   []curve   // of film.Links
	arrows [][]curve // of each step's messages
}

type stageNode struct {
	X, Y   string
	Label  string // the rank on it, if there is one
	Below  string // what else the processor is called
	Switch bool
}

// A stageFrame is the figure of one step.
type stageFrame struct {
	ID     string
	Loads  []stageLoad
	Arrows []stageArrow
}

// A stageLoad marks a directed link that a step's messages cross.
type stageLoad struct {
	Way       string
	Name      string
	Messages  int
	Congested bool
	X, Y      string // where its load is written
}

// A stageArrow goes from sender to receiver, past what lies between.
type stageArrow struct {
	Way, Head string
	Critical  bool
}

// The two directions of a link are drawn to the right of its middle, as one
// drives; what is written of a direction stands further out.
const (
	wayAside   = 4.0
	badgeAside = 9.0
)

func newStage(s Scene, f *film) stage {
	t := s.Result.Config.Topology
	st := stage{result: s.Result, plan: layout(t)}
	st.What = fmt.Sprintf("The network %v: %d processors, %d switches, %d links.", t, t.Processors(), t.Switches(), t.LinkCount())
	way := make(map[int]curve, 2*len(st.plan.wires)) // of each directed link
	for _, w := range st.plan.wires {
		st.Wires = append(st.Wires, w.curve.path())
		way[w.there] = w.curve.beside(-wayAside)
		way[w.back] = w.curve.reverse().beside(-wayAside)
	}
	for _, id := range f.ids {
		st.ways = append(st.ways, way[id])
		st.Ways = append(st.Ways, way[id].path())
	}
	st.seat(t)
	st.lead(f)
	st.frame()
	return st
}

// seat makes a node of every vertex, and names those that ranks sit on.
func (st *stage) seat(t topo.Topology) {
	label := make([]string, len(st.plan.at))
	for r := range st.result.Ranks {
		label[seatOf(st.result, r)] = strconv.Itoa(r)
	}
	for v, at := range st.plan.at {
		n := stageNode{X: number(at.x), Y: number(at.y), Label: label[v], Switch: v >= t.Processors()}
		if !n.Switch {
			n.Below = t.Name(v)
			if st.plan.bits > 0 {
				n.Below = fmt.Sprintf("%0*b", st.plan.bits, v)
			}
		}
		if n.Below == n.Label {
			n.Below = ""
		}
		st.Nodes = append(st.Nodes, n)
	}
}

// lead finds the ways of all arrows. Steps between the same ranks, such as
// those of a ring, look the same, and are worked out once.
func (st *stage) lead(f *film) {
	known := map[string][]curve{}
	for _, s := range f.Steps {
		var pairs [][2]int
		for _, m := range f.Messages[s.First:s.Last] {
			pairs = append(pairs, [2]int{seatOf(st.result, m.From), seatOf(st.result, m.To)})
		}
		key := fmt.Sprint(pairs)
		if _, ok := known[key]; !ok {
			known[key] = st.plan.arrows(pairs)
		}
		st.arrows = append(st.arrows, known[key])
	}
}

// frame finds how much must be seen: the network, and all arrows.
func (st *stage) frame() {
	seen := box{max: point{st.plan.width, st.plan.height}}
	edge := point{margin / 2, margin / 2}
	for _, arrows := range st.arrows {
		for _, a := range arrows {
			b := a.bounds()
			seen = seen.join(box{b.min.minus(edge), b.max.plus(edge)})
		}
	}
	size := seen.max.minus(seen.min)
	st.View = fmt.Sprintf("%s %s %s %s", number(seen.min.x), number(seen.min.y), number(size.x), number(size.y))
	st.Width = number(size.x)
	st.Wide = size.x > 2*size.y && size.x > 500
}

// step draws one step.
func (st *stage) step(f *film, i int) stageFrame {
	s := f.Steps[i]
	fr := stageFrame{ID: "step-" + strconv.Itoa(i+1)}
	for _, l := range s.Loads {
		badge := st.ways[l.Link].beside(-badgeAside).at(0.5)
		fr.Loads = append(fr.Loads, stageLoad{
			Way: st.Ways[l.Link], Name: f.Links[l.Link], Messages: l.Messages, Congested: l.Messages > 1,
			X: number(badge.x), Y: number(badge.y),
		})
	}
	for k, m := range f.Messages[s.First:s.Last] {
		head, shaft := st.arrows[i][k].head()
		fr.Arrows = append(fr.Arrows, stageArrow{Way: shaft.path(), Head: head, Critical: m.Critical})
	}
	return fr
}
