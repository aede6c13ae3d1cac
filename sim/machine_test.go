package sim_test

import (
	"reflect"
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

// working returns a machine on which a message takes t, of which sending and receiving it
// are work.
func working(t, send, receive float64) *sim.Machine {
	m := constant(t, t)
	m.Send = func(_, _, _ int) float64 { return send }
	m.Receive = func(_, _, _ int) float64 { return receive }
	return m
}

func TestMessagesThatAreWorkTakeTheTimeThatAPersonFinds(t *testing.T) {
	eager := func(m *sim.Machine) { m.RendezvousFrom = 100 }
	for _, test := range []struct {
		name       string
		collective sched.Collective
		algorithm  string
		p          int
		change     func(*sim.Config)
		want       float64
	}{
		{"a message between ranks with a processor each takes its time",
			sched.Bcast, "binomial", 2, on(working(10, 3, 4), eager), 10},
		// 0→1, 0→2 and 0→3 leave at 0, 3 and 6, and arrive 10 later.
		{"eager messages of a rank leave one after another",
			sched.Bcast, "linear", 4, on(working(10, 3, 4), eager), 16},
		// Steps of one message each: so does the second as soon as the first has left.
		{"an eager message does not wait for the arrival of the one before",
			sched.Bcast, "binomial", 4, on(working(10, 3, 4), eager), 20},
		// All three are in one step.
		{"a rendezvous takes its sender only the sending part",
			sched.Scatter, "direct", 4, on(working(10, 3, 4), func(*sim.Machine) {}), 16},
		{"a step with a rendezvous ends when it has arrived",
			sched.Bcast, "linear", 4, on(working(10, 3, 4), func(*sim.Machine) {}), 30},
		{"a rank that receives does nothing else",
			sched.Gather, "direct", 4, on(working(10, 3, 4), eager), 18}, // at 6, 10 and 14
		// By 3 both have sent, and at 6 both may receive.
		{"an exchange is sent before it is received",
			sched.AllReduce, "recursive-doubling", 2, on(working(10, 3, 4), eager), 10},
		// Rank 1 begins its step with a switch, by 13 after rank 0 has sent 0→1 from 5 to 7. It
		// sends 1→0 from 13 to 15, and receives by 18. Rank 0 receives, after a switch, by 24.
		{"a processor goes on with a rank as long as it can",
			sched.Barrier, "dissemination", 2, on(working(5, 2, 3), func(m *sim.Machine) {
				m.Processors, m.Switch, m.Step, m.RendezvousFrom = 1, 3, 5, 100
			}), 7 + 3 + 5 + 2 + 3 + 3 + 3},
		// 0→1 from 0 to 2, and after a switch received from 5 to 8. Then rank 1 combines.
		{"what ranks combine is work, too",
			sched.Reduce, "binomial", 2, on(working(5, 2, 3), func(m *sim.Machine) {
				m.Processors, m.Switch, m.RendezvousFrom = 1, 3, 100
				m.Combine = func(int) float64 { return 7 }
			}), 2 + 3 + 3 + 7},
		{"without parts, half of a message's time is work of each end",
			sched.Bcast, "binomial", 2, on(constant(10, 10), func(m *sim.Machine) { m.Processors, m.Switch = 1, 3 }), 5 + 3 + 5},
	} {
		if got := simulate(t, test.collective, test.algorithm, test.p, "full", 1, test.change).Time; got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

func TestACallCostsEveryRankThatHasPartInIt(t *testing.T) {
	call := func(p, m int, ranks ...int) sim.Part {
		s, err := algo.New(sched.AllReduce, "recursive-doubling", p, 0, algo.VariantBytes)
		if err != nil {
			t.Fatal(err)
		}
		return sim.Part{Schedule: s, Ranks: ranks, Words: m}
	}
	for _, test := range []struct {
		name  string
		parts []sim.Part
		want  float64
	}{
		{"a rank alone", []sim.Part{call(1, 8)}, 3 + 8},
		{"a rank alone, twice", []sim.Part{call(1, 8), call(1, 8)}, 2 * (3 + 8)},
		{"alone and then with another", []sim.Part{call(1, 8, 0), call(2, 4)}, 3 + 8 + 3 + 10},
		{"with another and then alone", []sim.Part{call(2, 4), call(1, 8, 1)}, 3 + 10 + 3 + 8},
	} {
		for _, works := range []bool{false, true} {
			machine := constant(10, 10)
			machine.Call, machine.Copy = 3, func(words int) float64 { return float64(words) }
			if works {
				machine.Send = func(_, _, _ int) float64 { return 2 }
				machine.Receive = machine.Send
			}
			full, err := topo.NewFull(2)
			if err != nil {
				t.Fatal(err)
			}
			r, err := sim.Run(sim.Config{Topology: full, Machine: machine}, test.parts...)
			if err != nil {
				t.Fatal(err)
			}
			if r.Time != test.want {
				t.Errorf("%s, messages are work %v: %v, want %v", test.name, works, r.Time, test.want)
			}
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
			m := asMachine(model.Model{Ts: 3, Tw: 0.5, Top: 0.25}) // half of whose times is work of each end
			m.Processors, m.Switch, m.Step, m.Call = 2, 2, 1, 1
			r := must(sim.Run(sim.Config{Topology: must(topo.NewFull(p)), Machine: m, Record: true}, sim.Part{Schedule: s, Words: wordsFor(s, 5)}))
			end := 0.0
			for _, leg := range r.Path {
				if leg.Start < end-1e-9 || leg.End > r.Time+1e-9 {
					t.Errorf("%v %s on %d ranks: a leg from %v to %v after %v", a.Collective, a.Name, p, leg.Start, leg.End, end)
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
		{func(c *sim.Config) { c.Machine.Send = func(_, _, _ int) float64 { return 1 } }, "a machine with one of Send and Receive: want both, or none"},
		{func(c *sim.Config) { c.Machine.RendezvousFrom = -1 }, "a rendezvous from -1 words: want 0 or more"},
		{func(c *sim.Config) { c.Machine.Capacity = -1 }, "a capacity of -1 messages: want 0 or more"},
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
