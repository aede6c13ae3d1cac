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
	Width string // where a figure is not as wide as the page
	Wide  bool   // much wider than high
	What  string // in words
	Wires []string
	Ways  []string // one for each of film.Links
	Nodes []stageNode
	Steps []stageFrame
	End   *stageFrame // what ranks hold in the end, if it has room
	Moved bool        // a rank sits on a processor of another number

	result *sim.Result
	film   *film
	plan   plan
	ways   []curve   // of film.Links
	arrows [][]curve // of each step's messages
	names  []label   // of vertices, beside them
	seen   box       // all that is drawn
}

type stageNode struct {
	X, Y   string
	Class  string    // rank, root, idle or switch
	Label  string    // the rank on it, if there is one; the name of a switch
	Binary string    // the processor's number, where it is this that makes the picture
	Below  string    // what links call it, if this is not to be seen else
	Box    *stageBox // of a switch, around its middle
}

type stageBox struct{ X, Y, Width, Height string }

func newStageBox(b box) stageBox {
	return stageBox{number(b.min.x), number(b.min.y), number(b.max.x - b.min.x), number(b.max.y - b.min.y)}
}

// A stageFrame is the figure of one step.
type stageFrame struct {
	ID     string
	Loads  []stageLoad
	Arrows []stageArrow
	Chips  []stageChip
}

// A stageChip says beside a node what its rank holds.
type stageChip struct {
	stageBox
	Lines []stageLine
}

type stageLine struct{ X, Y, Words string }

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
	stageEdge  = 8.0  // around what lies outside of the network
	chipSize   = 13.0 // of fonts, as page.css has them
	nameSize   = 10.5
	belowNode  = 30.0 // from the middle of a node to the foot of the name below it
)

// newStage draws all frames. States are what ranks hold before each step and
// at the end, or nil.
func newStage(s Scene, f *film, states [][][]string) stage {
	t := s.Result.Config.Topology
	st := stage{result: s.Result, film: f, plan: layout(t)}
	st.What = fmt.Sprintf("The network %v: processors %d, switches %d, links %d.", t, t.Processors(), t.Switches(), t.LinkCount())
	st.seen = box{max: point{st.plan.width, st.plan.height}}
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
	st.seat(t, rootOf(s))
	st.lead()
	if !besideNodes(states) {
		states = make([][][]string, len(f.Steps))
	} else {
		st.End = &stageFrame{ID: "step-end", Chips: st.chips(st.room(nil), states[len(f.Steps)])}
	}
	for i := range f.Steps {
		st.Steps = append(st.Steps, st.step(i, states[i]))
	}
	st.frame()
	return st
}

// seat makes a node of every vertex, and names those that ranks sit on.
func (st *stage) seat(t topo.Topology, root int) {
	rankOn := make(map[int]int, st.result.Ranks)
	for r := range st.result.Ranks {
		rankOn[seatOf(st.result, r)] = r
		st.Moved = st.Moved || seatOf(st.result, r) != r
	}
	for v, at := range st.plan.at {
		n := stageNode{X: number(at.x), Y: number(at.y), Class: "idle"}
		rank, taken := rankOn[v]
		switch {
		case v >= st.plan.processors:
			n.Class = "switch"
		case taken && rank == root:
			n.Class = "root"
		case taken:
			n.Class = "rank"
		}
		if taken {
			n.Label = strconv.Itoa(rank)
		}
		if st.plan.bits > 0 && v < st.plan.processors {
			n.Binary = binary(v, st.plan.bits)
		}
		switch {
		case n.Class == "switch":
			n.Label = t.Name(v)
			b := newStageBox(around(point{}, max(textWidth(n.Label, nameSize)+4, 2*nameSize), 1.6*nameSize))
			n.Box = &b
		case st.Moved || !taken:
			n.Below = t.Name(v)
			st.names = append(st.names, label{at: at.plus(point{0, belowNode - nameSize/3}), lines: []string{n.Below}, size: nameSize})
		}
		st.Nodes = append(st.Nodes, n)
	}
}

// lead finds the ways of all arrows. Steps between the same ranks, such as
// those of a ring, look the same, and are worked out once.
func (st *stage) lead() {
	known := map[string][]curve{}
	for _, s := range st.film.Steps {
		var pairs [][2]int
		for _, m := range st.film.Messages[s.First:s.Last] {
			pairs = append(pairs, [2]int{seatOf(st.result, m.From), seatOf(st.result, m.To)})
		}
		key := fmt.Sprint(pairs)
		if _, ok := known[key]; !ok {
			known[key] = st.plan.arrows(pairs)
		}
		st.arrows = append(st.arrows, known[key])
	}
}

// see makes sure that a box is within the figure, with room around it.
func (st *stage) see(b box) {
	edge := point{stageEdge, stageEdge}
	st.seen = st.seen.join(box{b.min.minus(edge), b.max.plus(edge)})
}

// frame says how much must be seen: the network, arrows, and what ranks hold.
func (st *stage) frame() {
	for _, arrows := range st.arrows {
		for _, a := range arrows {
			st.see(a.bounds())
		}
	}
	b := newStageBox(st.seen)
	size := st.seen.max.minus(st.seen.min)
	st.View = b.X + " " + b.Y + " " + b.Width + " " + b.Height
	st.Width = number(0.8 * size.x)
	st.Wide = size.x > 2*size.y && size.x > 500
}

// room is what is left beside the vertices, their names, and a step's arrows.
func (st *stage) room(arrows []curve) *space {
	room := newSpace(&st.plan, arrows)
	room.labels = append(room.labels, st.names...)
	return room
}

// step draws one step.
func (st *stage) step(i int, held [][]string) stageFrame {
	f, s := st.film, st.film.Steps[i]
	fr := stageFrame{ID: "step-" + strconv.Itoa(i+1)}
	room := st.room(st.arrows[i])
	for _, l := range s.Loads {
		badge := st.ways[l.Link].beside(-badgeAside).at(0.5)
		fr.Loads = append(fr.Loads, stageLoad{
			Way: st.Ways[l.Link], Name: f.Links[l.Link], Messages: l.Messages, Congested: l.Messages > 1,
			X: number(badge.x), Y: number(badge.y),
		})
		if l.Messages > 1 {
			room.labels = append(room.labels, label{at: badge, lines: []string{strconv.Itoa(l.Messages)}, size: 13, chip: true})
		}
	}
	for k, m := range f.Messages[s.First:s.Last] {
		head, shaft := st.arrows[i][k].head()
		fr.Arrows = append(fr.Arrows, stageArrow{Way: shaft.path(), Head: head, Critical: m.Critical})
	}
	fr.Chips = st.chips(room, held)
	return fr
}

// chips places what ranks hold where the least is in the way.
func (st *stage) chips(room *space, held [][]string) (all []stageChip) {
	for rank, lines := range held {
		if len(lines) == 0 {
			continue
		}
		at := st.plan.at[seatOf(st.result, rank)]
		room.placeNear(label{lines: lines, size: chipSize, chip: true}, at, st.plan.radius)
		l := room.labels[len(room.labels)-1]
		st.see(l.box())
		chip := stageChip{stageBox: newStageBox(l.box())}
		y := l.at.y - float64(len(lines)-1)*chipSize*lineHeight/2 + chipSize*0.36
		for i, words := range lines {
			chip.Lines = append(chip.Lines, stageLine{number(l.at.x), number(y + float64(i)*chipSize*lineHeight), words})
		}
		all = append(all, chip)
	}
	return all
}

// rootOf returns the rank that all data come from or go to, or -1.
func rootOf(s Scene) int {
	if len(s.Parts) != 1 || !s.Parts[0].Schedule.Collective.Rooted() {
		return -1
	}
	return partRank(s.Parts[0].Ranks, s.Parts[0].Schedule.Root)
}
