package command

import (
	"slices"

	"github.com/chorale-go/chorale/sim"
	"github.com/chorale-go/chorale/topo"
)

// halfwayNote says why a ring or torus may be slower than a line or mesh.
const halfwayNote = "note: messages that go halfway round all go upwards, and share those links; on a line or mesh they use both directions, which may be faster"

// sharesHalfway reports whether messages wait for links, and a message that decides the
// time goes halfway round a closed line.
func (e *scenario) sharesHalfway(r *sim.Result) bool {
	g, ok := e.config.Topology.(*topo.Grid)
	return ok && g.Closed() && waitsForLink(r) && slices.ContainsFunc(r.Path, func(l sim.Leg) bool {
		from, to := l.From, l.To
		if at := e.config.Placement; at != nil {
			from, to = at[from], at[to]
		}
		return halfway(g.Dims(), from, to)
	})
}

// halfway reports whether two processors are opposite each other on a closed line of a
// dimension. A line of two is no closed one.
func halfway(dims []int, from, to int) bool {
	for _, n := range slices.Backward(dims) {
		if d := from%n - to%n; n > 2 && 2*max(d, -d) == n {
			return true
		}
		from, to = from/n, to/n
	}
	return false
}
