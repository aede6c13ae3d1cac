package sim

import (
	"fmt"
	"math"

	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/topo"
)

// A network says which route a message takes and how long it takes, once it has
// started.
//
// It numbers the resources that messages hold: every directed link by its id,
// then every rank's send port, then every rank's receive port.
type network struct {
	topology        topo.Topology
	placement       []int // the processor of each rank; nil for its own number
	model           model.Model
	between         model.Model // of messages between hosts
	hosts           *topo.Hosts // nil for a topology without hosts
	storeAndForward bool
	allPort         bool
	machine         *Machine // in place of the model; nil for none
	processors      []int32  // the processor of each rank; nil where each has its own
	ranks           int
	links           int // directed

	last   []int32           // the last route
	routes map[int64][]int32 // those that are costly to find; nil where none are
}

func newNetwork(c Config, ranks int) *network {
	n := &network{
		topology: c.Topology, placement: c.Placement, model: c.Model, storeAndForward: c.StoreAndForward, allPort: c.AllPort,
		ranks: ranks, links: 2 * c.Topology.LinkCount(),
		last: make([]int32, 0, c.Topology.Diameter()),
	}
	n.hosts, _ = c.Topology.(*topo.Hosts)
	if n.between = c.Model; c.Between != nil {
		n.between = *c.Between
	}
	if n.machine = c.Machine; c.sharesProcessors(ranks) {
		n.shareProcessors(c.Machine.Processors)
	}
	if _, searches := c.Topology.(*topo.Graph); searches {
		n.routes = make(map[int64][]int32)
	}
	return n
}

func (n *network) sendPort(rank int32) int32 { return int32(n.links) + rank }
func (n *network) recvPort(rank int32) int32 { return int32(n.links+n.ranks) + rank }

// resourceName returns what a report calls a resource that a message waits for.
func (n *network) resourceName(resource int32) string {
	switch i := int(resource) - n.links; {
	case i < 0:
		return "link " + topo.LinkName(n.topology, int(resource))
	case i < n.ranks:
		return fmt.Sprintf("rank %d to send", i)
	default:
		return fmt.Sprintf("rank %d to receive", i-n.ranks)
	}
}

// route returns the links from one rank to another. They are valid until the
// next call.
func (n *network) route(from, to int32) []int32 {
	a, b := int(from), int(to)
	if n.placement != nil {
		a, b = n.placement[a], n.placement[b]
	}
	if n.routes == nil {
		n.last = n.topology.AppendRoute(n.last[:0], a, b)
		return n.last
	}
	key := int64(from)<<32 | int64(to)
	route, ok := n.routes[key]
	if !ok {
		route = n.topology.AppendRoute(nil, a, b)
		n.routes[key] = route
	}
	return route
}

// host returns the host of a rank; 0 where there are no hosts.
func (n *network) host(rank int32) int {
	at := int(rank)
	if n.placement != nil {
		at = n.placement[at]
	}
	if n.hosts == nil {
		return 0
	}
	return n.hosts.Host(at)
}

// apart reports whether the ends of a message are on different hosts.
func (n *network) apart(e ends) bool { return n.hosts != nil && n.host(e.from) != n.host(e.to) }

// prices returns the rates of a message.
func (n *network) prices(e ends) *model.Model {
	if n.hosts != nil && n.apart(e) {
		return &n.between
	}
	return &n.model
}

// linkRate returns the words per unit of time that a link carries where messages share
// it; infinity for no limit. A link between a rank and its host is as fast as the faster
// of its messages need it; on a machine, it has no limit.
func (n *network) linkRate(link int32) float64 {
	between := n.hosts != nil && n.hosts.ToNetwork(int(link))
	switch {
	case n.machine != nil && between:
		return n.machine.Network
	case n.machine != nil:
		return math.Inf(1)
	case between:
		return 1 / n.between.Tw
	}
	return 1 / min(n.model.Tw, n.between.Tw)
}

// latency returns the time from a message's start until its first word flows.
func (n *network) latency(e ends, hops int) float64 {
	return latency(n.prices(e), hops)
}

func latency(m *model.Model, hops int) float64 { return m.Ts + float64(hops)*m.Th }

// perWord returns the time of a word that no other message slows down.
func (n *network) perWord(e ends, hops int) float64 {
	return n.perWordAt(n.prices(e), hops)
}

func (n *network) perWordAt(m *model.Model, hops int) float64 {
	if n.storeAndForward {
		return m.Tw * float64(hops)
	}
	return m.Tw
}

// combining returns the time to combine some words.
func (n *network) combining(words int) float64 {
	if n.machine != nil {
		return n.machine.Combine(words)
	}
	return n.model.Top * float64(words)
}

// duration returns the time from a message's start until it has arrived.
func (n *network) duration(e ends, words, hops int) float64 {
	m := n.prices(e)
	return latency(m, hops) + n.perWordAt(m, hops)*float64(words)
}
