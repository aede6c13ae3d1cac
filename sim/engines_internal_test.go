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

// Run takes the cheapest engine that gives the right times. This test runs
// schedules with both, and compares.

// runWith simulates a schedule, event by event if queued, and reports whether
// its times are right.
func runWith(t *testing.T, queued bool, c Config, p Part) (r *Result, right bool) {
	t.Helper()
	n := newNetwork(c, p.Schedule.P)
	table, err := newProgramTable(n, []Part{p}, estimate{}, c.Sync)
	if err != nil {
		t.Fatal(err)
	}
	e := newContentionFree(c, table, n)
	e.run()
	switch {
	case e.contended && !queued:
		return nil, false
	case e.undelivered > 0:
		t.Fatal(e.stuck())
	}
	e.completeSteps()
	if queued {
		return e.result(newQueueing(c, table, n, e.links).run()), true
	}
	return e.result(e.times), true
}

func TestBothEnginesAgree(t *testing.T) {
	tolerant := gocmp.Options{
		gocmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(a, b) }),
		cmpopts.IgnoreFields(Result{}, "Config", "Path"), cmpopts.EquateEmpty(),
	}
	right := 0
	for _, a := range algo.Catalog() {
		for _, p := range []int{1, 2, 3, 8, 17} {
			s, err := algo.New(a.Collective, a.Name, p, 0, algo.VariantBytes)
			if err != nil || testing.Short() && p > 8 {
				continue // a restriction
			}
			full, err := topo.NewFull(p)
			if err != nil {
				t.Fatal(err)
			}
			for _, network := range []topo.Topology{full, ring(t, p)} {
				part := Part{Schedule: s, Words: 3*s.Blocks + 1}
				c := Config{Topology: network, Model: model.Model{Ts: 0.3, Tw: 0.1, Th: 0.7, Top: 0.9}, Record: true}
				got, ok := runWith(t, false, c, part)
				if !ok {
					continue
				}
				right++
				want, _ := runWith(t, true, c, part)
				if diff := gocmp.Diff(got, want, tolerant); diff != "" {
					t.Fatalf("%v %s p=%d %v: contention-free -, queueing +\n%s", a.Collective, a.Name, p, network, diff)
				}
			}
		}
	}
	if right < 100 {
		t.Errorf("without queues, only %d schedules have the right times", right)
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
