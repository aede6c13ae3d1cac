package sim

import (
	"fmt"

	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/topo"
)

// A network says which way messages go and how long they take, once they go.
//
// What messages hold while they are under way are its lanes: every directed
// link by its id, then every rank's way out, then every rank's way in.
type network struct {
	topology topo.Topology
	place    []int // of each rank; nil for its own number
	model    model.Model
	forward  bool // store and forward
	ranks    int
	links    int // directed

	last  []int32           // the last route
	known map[int64][]int32 // routes that are costly to find
}

func newNetwork(c Config, ranks int) *network {
	n := &network{
		topology: c.Topology, place: c.Placement, model: c.Model, forward: c.StoreAndForward,
		ranks: ranks, links: 2 * c.Topology.LinkCount(),
		last: make([]int32, 0, c.Topology.Diameter()),
	}
	if _, searches := c.Topology.(*topo.Graph); searches {
		n.known = make(map[int64][]int32)
	}
	return n
}

func (n *network) wayOut(rank int32) int32 { return int32(n.links) + rank }
func (n *network) wayIn(rank int32) int32  { return int32(n.links+n.ranks) + rank }

// laneName says what somebody waits for who waits for a lane.
func (n *network) laneName(lane int32) string {
	switch i := int(lane) - n.links; {
	case i < 0:
		return "link " + topo.LinkName(n.topology, int(lane))
	case i < n.ranks:
		return fmt.Sprintf("rank %d to send", i)
	default:
		return fmt.Sprintf("rank %d to receive", i-n.ranks)
	}
}

// route returns the links from one rank to another. They are there until the
// next call.
func (n *network) route(from, to int32) []int32 {
	a, b := int(from), int(to)
	if n.place != nil {
		a, b = n.place[a], n.place[b]
	}
	if n.known == nil {
		n.last = n.topology.AppendRoute(n.last[:0], a, b)
		return n.last
	}
	key := int64(from)<<32 | int64(to)
	route, ok := n.known[key]
	if !ok {
		route = n.topology.AppendRoute(nil, a, b)
		n.known[key] = route
	}
	return route
}

// latency is how long a message takes before its words are, so to say, under
// way.
func (n *network) latency(hops int) float64 {
	return n.model.Ts + float64(hops)*n.model.Th
}

// perWord is how long a word takes when nothing slows it down.
func (n *network) perWord(hops int) float64 {
	if n.forward {
		return n.model.Tw * float64(hops)
	}
	return n.model.Tw
}

// duration is how long a message takes.
func (n *network) duration(words, hops int) float64 {
	return n.latency(hops) + n.perWord(hops)*float64(words)
}
