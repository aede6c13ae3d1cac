package draw

import (
	"strconv"
	"testing"

	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/sim"
	"github.com/chorale-go/chorale/topo"
)

// The contents of ranks cover neither the names of processors, which stand below the
// nodes if ranks are placed elsewhere, nor the loads of congested links.
func TestBadgesOfAPageKeepClearOfLabels(t *testing.T) {
	for _, c := range []struct {
		network, algorithm string
		collective         sched.Collective
	}{
		{"linear", "recursive-doubling", sched.AllReduce}, {"ring", "recursive-doubling", sched.AllGather}, {"ring", "binomial", sched.Gather},
		{"mesh:2x4", "binomial", sched.Scatter}, {"hypercube", "binomial", sched.Gather}, {"torus:2x4", "recursive-doubling", sched.AllReduce},
		{"full", "linear", sched.Bcast}, {"tree", "butterfly", sched.AllReduce}, {"star", "recursive-doubling", sched.AllGather}, {"mesh:4x2", "recursive-halving", sched.ReduceScatter},
	} {
		network := c.network
		part := sim.Part{Schedule: mustSchedule(t, c.collective, c.algorithm, 8, 0), Words: 64}
		s := simulate(t, network, mustTopology(t, network, 8), topo.Placement{3, 1, 2, 0, 7, 5, 6, 4}, part)
		a := newAnimation(s)
		states, err := stateLines(s)
		if err != nil {
			t.Fatal(err)
		}
		b := &pageFigureBuilder{result: s.Result, animation: a, layout: newLayout(s.Result.Config.Topology)}
		b.addLinks()
		b.addNodes(s.Result.Config.Topology, rootOf(s))
		b.routeArrows()
		if len(b.nodeNames) != 8 {
			t.Fatalf("%s: %d names below nodes", network, len(b.nodeNames))
		}
		for i := range a.Steps {
			frame := b.drawStep(i, states[i])
			labels := b.nodeNames
			for _, l := range frame.Loads {
				if l.Congested {
					labels = append(labels, label{at: point{number64(t, l.X), number64(t, l.Y)}, lines: []string{strconv.Itoa(l.Messages)}, size: 13})
				}
			}
			for _, badge := range frame.Badges {
				box := rect{point{number64(t, badge.X), number64(t, badge.Y)}, point{number64(t, badge.X) + number64(t, badge.Width), number64(t, badge.Y) + number64(t, badge.Height)}}
				for _, name := range labels {
					if box.overlaps(name.bounds()) {
						t.Errorf("%s, step %d: the badge %v covers the label %v", network, i+1, badge.Lines, name.lines)
					}
				}
			}
		}
	}
}

func number64(t *testing.T, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
