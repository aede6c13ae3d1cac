package sim

import (
	"math"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/topo"
)

// Run takes the shortest way that it can. These tests send schedules down every
// way that is open to them, and compare.

var ways = map[string]func(c Config, s *score, n *network) *rounds{
	"depth first": func(c Config, s *score, n *network) *rounds {
		r := newRounds(c, s, n)
		r.depthFirst()
		return r
	},
	"breadth first": func(c Config, s *score, n *network) *rounds {
		r := newRounds(c, s, n)
		r.breadthFirst()
		return r
	},
}

// way plays a schedule in one of the ways, and event by event if queued, and
// reports whether that is as good as any.
func way(t *testing.T, name string, queued bool, c Config, p Part) (r *Result, open bool) {
	t.Helper()
	s, err := newScore(p.Schedule.P, []Part{p}, estimate{})
	if err != nil {
		t.Fatal(err)
	}
	n := newNetwork(c, p.Schedule.P)
	lined := ways[name](c, s, n)
	switch {
	case lined.disordered || lined.contended && !queued:
		return nil, false
	case lined.undone > 0:
		t.Fatal(lined.stuck())
	}
	lined.complete()
	if queued {
		return lined.result(newQueue(c, s, n).run()), true
	}
	return lined.result(lined.times), true
}

func TestAllWaysToSimulateAScheduleAgree(t *testing.T) {
	tolerant := gocmp.Options{
		gocmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(a, b) }),
		cmpopts.IgnoreFields(Result{}, "Config", "Path"), cmpopts.EquateEmpty(),
	}
	open := map[string]int{}
	for _, a := range algo.Catalog() {
		for _, p := range []int{1, 2, 3, 8, 17} {
			s, err := algo.New(a.Collective, a.Name, p, 0, algo.VariantBytes)
			if err != nil {
				continue // a restriction
			}
			full, err := topo.NewFull(p)
			if err != nil {
				t.Fatal(err)
			}
			for _, network := range []topo.Topology{full, ring(t, p)} {
				part := Part{Schedule: s, Words: 3*s.Blocks + 1}
				c := Config{Topology: network, Model: model.Model{Ts: 0.3, Tw: 0.1, Th: 0.7, Top: 0.9}, Record: true}
				want, ok := way(t, "breadth first", true, c, part)
				if !ok {
					t.Fatalf("%v %s p=%d %v: breadth first is out of order", a.Collective, a.Name, p, network)
				}
				for name := range ways {
					for _, queued := range []bool{false, true} {
						got, ok := way(t, name, queued, c, part)
						if !ok {
							continue
						}
						if !queued {
							open[name]++
						}
						if diff := gocmp.Diff(got, want, tolerant); diff != "" {
							t.Fatalf("%v %s p=%d %v, %s, queued %v: got -, want +\n%s", a.Collective, a.Name, p, network, name, queued, diff)
						}
					}
				}
			}
		}
	}
	for name := range ways {
		if open[name] < 100 {
			t.Errorf("%s without a queue: only %d schedules went that way", name, open[name])
		}
	}

}

func ring(t *testing.T, p int) topo.Topology {
	t.Helper()
	r, err := topo.NewRing(p)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
