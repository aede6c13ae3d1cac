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

// slowBetween has a message of 10 words take 20 within a host, and 150 between two.
func slowBetween(c *sim.Config) {
	c.Between = &model.Model{Ts: 100, Tw: 5}
}

// slowNetwork is a machine of the same prices. Its hosts' links carry what one message needs.
func slowNetwork(hostOf func(rank int) int) *sim.Machine {
	return &sim.Machine{
		Message: func(from, to, words int, _ bool) float64 {
			if hostOf(from) != hostOf(to) {
				return 100 + 5*float64(words)
			}
			return 10 + float64(words)
		},
		Combine: func(int) float64 { return 0 },
		Network: 1.0 / 5,
	}
}

// workingHosts is a machine of two hosts of two ranks. A message within a host takes 10, and
// sending a message 3, and receiving it 4.
func workingHosts() *sim.Machine {
	m := slowNetwork(func(rank int) int { return rank / 2 })
	between := m.Message
	m.Message = func(from, to, words int, exchange bool) float64 {
		if from/2 == to/2 {
			return 10
		}
		return between(from, to, words, exchange)
	}
	m.Send = func(_, _, _ int) float64 { return 3 }
	m.Receive = func(_, _, _ int) float64 { return 4 }
	return m
}

func TestMessagesBetweenHostsTakeTheTimeThatAPersonFinds(t *testing.T) {
	share := func(c *sim.Config) { c.Share = true }
	for _, test := range []struct {
		name       string
		collective sched.Collective
		algorithm  string
		topology   string
		change     func(*sim.Config)
		want       float64
	}{
		{"one message between hosts, and then one on each", sched.Bcast, "binomial", "hosts:2x2", nil, 150 + 20},
		{"without prices of their own, they cost what others do", sched.Bcast, "binomial", "hosts:2x2", func(c *sim.Config) { c.Between = nil }, 20 + 20},
		{"two messages wait for the link of their host", sched.AllReduce, "recursive-doubling", "hosts:2x2", nil, 20 + 2*150},
		{"two links carry them at once", sched.AllReduce, "recursive-doubling", "hosts:2x2,links=2", nil, 20 + 150},
		{"or they start at once and share the link", sched.AllReduce, "recursive-doubling", "hosts:2x2", share, 20 + 100 + 2*50},
		{"a placement decides which ranks share a host", sched.AllReduce, "recursive-doubling", "hosts:2x2",
			func(c *sim.Config) { c.Placement = topo.Placement{0, 2, 1, 3} }, 2*150 + 20},
		{"hosts differ in size", sched.Bcast, "linear", "hosts:3+1", nil, 20 + 20 + 150},
		// Within a host by 10. From 10 on both ranks of a host send, and 96 later their words flow at
		// half of the link's rate, until 206. Receiving takes 4.
		{"messages that are work share it on their way", sched.AllReduce, "recursive-doubling", "hosts:2x2",
			func(c *sim.Config) { c.Machine = workingHosts() }, 10 + 96 + 2*50 + 4},
		{"eager ones leave before", sched.Bcast, "binomial", "hosts:2x2", func(c *sim.Config) {
			c.Machine = workingHosts()
			c.Machine.RendezvousBetween = 100
		}, 150 + 10},
		{"half of an empty message is work of each end, and the network carries the rest", sched.Bcast, "binomial", "hosts:2x2", func(c *sim.Config) {
			c.Machine = slowNetwork(func(rank int) int { return rank / 2 })
			c.Machine.Processors = 1
		}, 150 + 20},
		{"a machine's messages share the link", sched.AllReduce, "recursive-doubling", "hosts:2x2",
			func(c *sim.Config) { c.Machine = slowNetwork(func(rank int) int { return rank / 2 }) }, 20 + 100 + 2*50},
	} {
		change := func(c *sim.Config) {
			slowBetween(c)
			if test.change != nil {
				test.change(c)
			}
		}
		if got := simulate(t, test.collective, test.algorithm, 4, test.topology, 10, change).Time; got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

func TestAMachineWithTwoPricesIsTheModelWhoseMessagesShareLinks(t *testing.T) {
	for _, a := range algo.Catalog() {
		for _, sizes := range [][]int{{4, 4}, {1, 3, 4}} {
			hosts := must(topo.NewHosts(1, sizes...))
			s, err := algo.New(a.Collective, a.Name, hosts.Processors(), 0, algo.VariantBytes)
			if err != nil {
				continue // a restriction
			}
			c := sim.Config{Topology: hosts, Model: model.Model{Ts: 10, Tw: 1}, Share: true}
			slowBetween(&c)
			part := sim.Part{Schedule: s, Words: wordsFor(s, 3)}
			want := must(sim.Run(c, part))
			c.Share, c.Machine = false, slowNetwork(hosts.Host)
			got := must(sim.Run(c, part))
			got.Config, want.Config = sim.Config{}, sim.Config{}
			if !near(got.Time, want.Time) || len(got.PerRank) != len(want.PerRank) {
				t.Errorf("%v %s on %v: the machine takes %v, the model %v", a.Collective, a.Name, hosts, got.Time, want.Time)
			}
		}
	}
}

// exchanges simulates one exchange of two ranks, or two at the same time: of ranks 0 and 1,
// and of ranks 2 and 3.
func exchanges(n int, topology string, m *sim.Machine, words int) float64 {
	s := must(algo.New(sched.AllReduce, "recursive-doubling", 2, 0, 0))
	parts := []sim.Part{{Schedule: s, Ranks: []int{0, 1}, Words: words}, {Schedule: s, Ranks: []int{2, 3}, Words: words}}
	return must(sim.Run(sim.Config{Topology: must(topo.Parse(topology, 2*n)), Machine: m}, parts[:n]...)).Time
}

func TestEachHostHasProcessorsAndMemoryOfItsOwn(t *testing.T) {
	oneProcessor := constant(10, 10)
	oneProcessor.Processors, oneProcessor.Switch = 1, 3
	slowMemory := asMachine(model.Model{Ts: 2, Tw: 1})
	slowMemory.Memory = 2
	for name, m := range map[string]*sim.Machine{"one processor": oneProcessor, "a slow memory": slowMemory} {
		alone, together, apart := exchanges(1, "full", m, 100), exchanges(2, "hosts:1x4", m, 100), exchanges(2, "hosts:2x2", m, 100)
		if apart != alone || together < 1.5*alone {
			t.Errorf("%s: two exchanges take %v on one host and %v on two, where one alone takes %v", name, together, apart, alone)
		}
	}
}

// One host is a machine as any other, in all that the result says but the links.
func TestOneHostIsAMachineAsAnyOther(t *testing.T) {
	for _, a := range algo.Catalog() {
		s, err := algo.New(a.Collective, a.Name, 8, 0, algo.VariantBytes)
		if err != nil {
			continue // a restriction
		}
		m := asMachine(model.Model{Ts: 3, Tw: 0.5, Top: 0.25})
		m.Processors, m.Switch, m.Step, m.Call, m.Memory, m.MemoryFrom = 3, 2, 1, 1, 4, 2
		m.Network = 100
		part := sim.Part{Schedule: s, Words: wordsFor(s, 5)}
		got := must(sim.Run(sim.Config{Topology: must(topo.NewHosts(1, 8)), Machine: m}, part))
		m.Network = 0
		want := must(sim.Run(sim.Config{Topology: must(topo.NewFull(8)), Machine: m}, part))
		if !reflect.DeepEqual(got.PerRank, want.PerRank) {
			t.Errorf("%v %s: one host takes %v, the machine %v", a.Collective, a.Name, got.Time, want.Time)
		}
	}
}

func TestPricesBetweenHostsNeedHosts(t *testing.T) {
	for _, test := range []struct {
		change func(*sim.Config)
		want   string
	}{
		{slowBetween, "prices between hosts on ring: want a topology of hosts"},
		{func(c *sim.Config) { c.Machine = slowNetwork(func(int) int { return 0 }) }, "prices between hosts on ring: want a topology of hosts"},
		{func(c *sim.Config) { c.Between = &model.Model{Ts: -1} }, "ts between hosts -1: want a number, 0 or more"},
	} {
		c := sim.Config{Topology: must(topo.NewRing(2)), Model: model.Default()}
		test.change(&c)
		s := must(algo.New(sched.Bcast, "binomial", 2, 0, 8))
		if _, err := sim.Run(c, sim.Part{Schedule: s, Words: 1}); err == nil || err.Error() != test.want {
			t.Errorf("the error is %v: want %s", err, test.want)
		}
	}
}
