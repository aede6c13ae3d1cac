package sim_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/sim"
	"github.com/chorale-go/chorale/topo"
)

// asMachine returns the machine whose times are those of a model without hops.
func asMachine(m model.Model) *sim.Machine {
	return &sim.Machine{
		Message: func(_, _, words int, _ bool) float64 { return m.Ts + m.Tw*float64(words) },
		Combine: func(words int) float64 { return m.Top * float64(words) },
	}
}

// constant returns a machine on which a message takes t, and one of an exchange x.
func constant(t, x float64) *sim.Machine {
	return &sim.Machine{
		Message: func(_, _, _ int, exchange bool) float64 {
			if exchange {
				return x
			}
			return t
		},
		Combine: func(int) float64 { return 0 },
	}
}

func TestAMachineOfOneLineIsTheTextbooksModelExactly(t *testing.T) {
	for _, a := range algo.Catalog() {
		for _, p := range []int{2, 3, 5, 8, 17} {
			s, err := algo.New(a.Collective, a.Name, p, 0, algo.VariantBytes)
			if err != nil || testing.Short() && p > 8 {
				continue // a restriction
			}
			for _, m := range awkwardModels {
				if m.Th > 0 {
					continue
				}
				for _, record := range []bool{false, true} {
					c := sim.Config{Topology: must(topo.NewFull(p)), Model: m, Record: record}
					part := sim.Part{Schedule: s, Words: wordsFor(s, 3) + 1}
					want := must(sim.Run(c, part))
					c.Machine = asMachine(m)
					got := must(sim.Run(c, part))
					c.Machine.Processors = p // each has its own
					own := must(sim.Run(c, part))
					got.Config, want.Config, own.Config = sim.Config{}, sim.Config{}, sim.Config{}
					if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(own, want) {
						t.Fatalf("%v %s on %d ranks, %+v: the machine takes %v, the model %v", a.Collective, a.Name, p, m, got.Time, want.Time)
					}
				}
			}
		}
	}
}

// on returns a change to a simulation: a machine, by a few of its fields.
func on(m *sim.Machine, change func(*sim.Machine)) func(*sim.Config) {
	change(m)
	return func(c *sim.Config) { c.Machine = m }
}

func TestRanksThatShareProcessorsTakeTheTimeThatAPersonFinds(t *testing.T) {
	for _, test := range []struct {
		name       string
		collective sched.Collective
		algorithm  string
		p          int
		change     func(*sim.Config)
		want       float64
	}{
		{"a message between two ranks of a processor has a switch",
			sched.Bcast, "binomial", 2, on(constant(10, 10), func(m *sim.Machine) { m.Processors, m.Switch = 1, 3 }), 13},
		{"an exchange of two ranks on two processors has none",
			sched.AllReduce, "recursive-doubling", 2, on(constant(10, 15), func(m *sim.Machine) { m.Processors, m.Switch = 2, 3 }), 15},
		// 0↔1 from 0 to 10; 2↔3 on the same processors, with a switch, to 23. Then 0→2 and
		// 1→3 with a switch to their senders and one to their receivers, to 39, and back
		// with one each, to 52.
		{"the pairs of an exchange take turns",
			sched.AllReduce, "recursive-doubling", 4, on(constant(10, 10), func(m *sim.Machine) { m.Processors, m.Switch = 2, 3 }), 52},
		// Rank 0 begins its step by 5, and rank 1, with a switch, by 13; 0→1 with two
		// switches by 29, 1→0 with one by 42.
		{"a processor begins the steps of its ranks one after another",
			sched.Barrier, "dissemination", 2, on(constant(10, 10), func(m *sim.Machine) { m.Processors, m.Switch, m.Step = 1, 3, 5 }), 42},
		{"ranks with their own processors begin their steps at once",
			sched.Barrier, "dissemination", 2, on(constant(10, 10), func(m *sim.Machine) { m.Call, m.Step = 2, 5 }), 17},
		// 0→1 and then 1→0, with a switch each, by 26. Rank 0, which has received last, combines
		// by 33, and rank 1, after a switch, by 43.
		{"a processor combines for one rank at a time",
			sched.AllReduce, "recursive-doubling", 2, on(constant(10, 10), func(m *sim.Machine) {
				m.Processors, m.Switch = 1, 3
				m.Combine = func(int) float64 { return 7 }
			}), 43},
	} {
		if got := simulate(t, test.collective, test.algorithm, test.p, "full", 1, test.change).Time; got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

func TestMessagesShareTheMemoryOfAMachine(t *testing.T) {
	for words, want := range map[int]float64{
		100: 2 + 2*100, // both ways at a time
		99:  2 + 99,    // too short to need it
	} {
		r := simulate(t, sched.AllGather, "ring", 2, "full", words, func(c *sim.Config) {
			c.Machine = asMachine(model.Model{Ts: 2, Tw: 1})
			c.Machine.Memory, c.Machine.MemoryFrom = 1, 100
		})
		if r.Time != want {
			t.Errorf("two messages of %d words take %v: want %v", words, r.Time, want)
		}
	}
}

// The legs of a critical path follow each other, whatever they waited for.
func TestTheCriticalPathOfRanksThatShareProcessorsIsInOrder(t *testing.T) {
	for _, a := range algo.Catalog() {
		for _, p := range []int{3, 8} {
			s, err := algo.New(a.Collective, a.Name, p, 0, algo.VariantBytes)
			if err != nil {
				continue // a restriction
			}
			m := asMachine(model.Model{Ts: 3, Tw: 0.5, Top: 0.25})
			m.Processors, m.Switch, m.Step, m.Call = 2, 2, 1, 1
			r := must(sim.Run(sim.Config{Topology: must(topo.NewFull(p)), Machine: m, Record: true}, sim.Part{Schedule: s, Words: wordsFor(s, 5)}))
			end := 0.0
			for _, leg := range r.Path {
				if leg.Start < end-1e-9 || leg.End > r.Time+1e-9 {
					t.Errorf("%v %s on %d ranks: a leg from %v to %v after %v", a.Collective, a.Name, p, leg.Start, leg.End, end)
				}
				if leg.Waited > 0 && leg.WaitedFor == "" || strings.Contains(leg.WaitedFor, "rank") {
					t.Errorf("%v %s on %d ranks: a leg waits for %q", a.Collective, a.Name, p, leg.WaitedFor)
				}
				end = leg.End
			}
			for rank, k := range r.PerRank {
				if k.End > r.Time || k.Received > 0 && k.End == 0 {
					t.Errorf("%v %s: rank %d ends at %v of %v", a.Collective, a.Name, rank, k.End, r.Time)
				}
			}
		}
	}
}

func TestAMachineThatMakesNoSenseIsRefused(t *testing.T) {
	for _, test := range []struct {
		change func(*sim.Config)
		want   string
	}{
		{func(c *sim.Config) { c.Machine = &sim.Machine{} }, "a machine without times: want Message and Combine"},
		{func(c *sim.Config) { c.Machine.Processors = -1 }, "-1 processors: want 0 or more"},
		{func(c *sim.Config) { c.Machine.Switch = -1 }, "a machine's time -1: want a number, 0 or more"},
		{func(c *sim.Config) { c.MemoryBandwidth = 1 }, "a memory bandwidth beside that of a machine: want one of them"},
		{func(c *sim.Config) { c.Share = true }, "a machine and links that are shared or store messages: want one of them"},
		{func(c *sim.Config) { c.Machine.Processors, c.Sync = 1, true }, "steps in common and processors that ranks share: want one of them"},
		{func(c *sim.Config) { c.Machine.Processors, c.AllPort = 1, true }, "all ports and processors that ranks share: want single ports"},
	} {
		c := sim.Config{Topology: must(topo.NewFull(2)), Machine: constant(1, 1)}
		test.change(&c)
		s := must(algo.New(sched.Bcast, "binomial", 2, 0, 8))
		if _, err := sim.Run(c, sim.Part{Schedule: s, Words: 1}); err == nil || err.Error() != test.want {
			t.Errorf("the error is %v: want %s", err, test.want)
		}
	}
}
