package sim_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/sim"
	"github.com/chorale-go/chorale/topo"
)

var awkwardSizes = []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 31, 32, 33}

// Whole numbers, nothing for something, hops and combining, and decimals whose
// sums are not exact.
var awkwardModels = []model.Model{
	{Ts: 10, Tw: 1},
	{Ts: 0, Tw: 1},
	{Ts: 10, Tw: 0},
	{Ts: 3, Tw: 2, Th: 1, Top: 0.5},
	{Ts: 0.1, Tw: 0.1, Th: 0.3, Top: 0.7},
	{Ts: 0.3, Tw: 0.1},
	{Th: 1},
	{Top: 1},
	{Ts: 1e-6, Tw: 1e-9, Th: 1e-7, Top: 3e-10},
}

// networks returns one of each kind that has room for p ranks.
func networks(p int) []topo.Topology {
	cube := 1
	for cube < p {
		cube *= 2
	}
	rows := max(1, (p+3)/4)
	graph := [][2]int{{0, p}, {p, p + 1}} // two switches, some processors at each, and some in a row
	for v := 1; v < p; v++ {
		graph = append(graph, [2]int{v, []int{p, p + 1, v - 1}[v%3]})
	}
	var all []topo.Topology
	for _, spec := range []string{"linear", "ring", "full", "star"} {
		all = append(all, must(topo.Parse(spec, p)))
	}
	return append(all,
		must(topo.NewMesh(rows, 4)), must(topo.NewTorus(rows, 4)), must(topo.NewTorus(2, rows, 2)),
		must(topo.NewHypercube(cube)), must(topo.NewTree(cube)),
		must(topo.NewFatTree(6)), must(topo.NewDragonfly(4, 2, 2)),
		must(topo.NewHosts(1, p-p/2, max(1, p/2))), must(topo.NewHosts(2, 3, rows, rows, 3*rows)),
		must(topo.NewGraph("graph", p, []string{"a", "b"}, graph)))
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

// agree simulates parts with both simulators, and fails if the results differ.
func agree(t rapid.TB, c sim.Config, parts ...sim.Part) {
	t.Helper()
	c.Record = true
	r, err := sim.Run(c, parts...)
	if err != nil {
		t.Fatal(err)
	}
	if wrong := simulateNaively(c, parts...).differs(r); wrong != "" {
		t.Fatalf("%v %s on %d ranks and %d more parts, m=%d, on %v placed %v, model %+v, between hosts %+v, all-port %v, store-and-forward %v, share %v, sync %v, memory %v:\n%s",
			parts[0].Schedule.Collective, parts[0].Schedule.Algorithm, parts[0].Schedule.P, len(parts)-1, parts[0].Words,
			c.Topology, c.Placement, c.Model, c.Between, c.AllPort, c.StoreAndForward, c.Share, c.Sync, c.MemoryBandwidth, wrong)
	}
}

// someConfig chooses a network with room for p ranks, and everything else.
func someConfig(rng *rand.Rand, p int) sim.Config {
	all := networks(p)
	c := sim.Config{
		Topology:        all[rng.IntN(len(all))],
		Model:           awkwardModels[rng.IntN(len(awkwardModels))],
		AllPort:         rng.IntN(2) == 0,
		StoreAndForward: rng.IntN(3) == 0,
		Share:           rng.IntN(3) == 0,
		Sync:            rng.IntN(3) == 0,
	}
	if rng.IntN(3) == 0 {
		c.Placement = topo.Random(c.Topology.Processors(), rng.Uint64())
	}
	if rng.IntN(4) == 0 {
		c.MemoryBandwidth = []float64{0.3, 1, 1.7, 4}[rng.IntN(4)] / cmp.Or(c.Model.Tw, 1)
	}
	if _, ok := c.Topology.(*topo.Hosts); ok && rng.IntN(4) > 0 {
		unit := cmp.Or(c.Model.Ts, c.Model.Tw, c.Model.Th, c.Model.Top) // the sums of other units would lose digits
		c.Between = &model.Model{Ts: unit * []float64{0, 1, 7.3}[rng.IntN(3)], Tw: unit * []float64{0, 0.03, 1, 5.5}[rng.IntN(4)], Th: c.Model.Th}
	}
	return c
}

// Every algorithm, with its parameters, on every awkward number of ranks, each
// time on another network by other rules.
func TestEveryScheduleTakesAsLongAsTheRulesSay(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, a := range algo.Catalog() {
		for _, p := range awkwardSizes {
			if testing.Short() && p > 9 {
				continue
			}
			for i, spec := range algo.Variants(a, p) {
				if i > 0 && (testing.Short() || p > 17 || (i+p)%4 > 0) {
					continue // the naive simulation is slow
				}
				s, err := algo.New(a.Collective, spec, p, 0, algo.VariantBytes)
				if err != nil {
					continue // a restriction
				}
				words := wordsFor(s, 1+rng.IntN(5))
				if words > 0 && p > 1 {
					words += rng.IntN(p)
				}
				agree(t, someConfig(rng, p), sim.Part{Schedule: s, Words: words})
			}
		}
	}
}

// Several schedules, each on some of the ranks, some at the same time and some
// one after another.
func TestSeveralSchedulesTakeAsLongAsTheRulesSay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ranks := rapid.IntRange(1, 20).Draw(t, "ranks")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		var parts []sim.Part
		for range rapid.IntRange(1, 5).Draw(t, "parts") {
			p := 1 + rng.IntN(ranks)
			a := algo.Catalog()[rng.IntN(len(algo.Catalog()))]
			s, err := algo.New(a.Collective, a.Name, p, 0, algo.VariantBytes)
			if err != nil {
				continue
			}
			parts = append(parts, sim.Part{Schedule: s, Ranks: rng.Perm(ranks)[:p], Words: wordsFor(s, 1+rng.IntN(9))})
		}
		if len(parts) > 0 {
			agree(t, someConfig(rng, ranks), parts...)
		}
	})
}

// Programs that no collective has: messages of all lengths to anybody, several
// to and from one rank in a step, multicasts, copies that combine.
func TestWildProgramsTakeAsLongAsTheRulesSay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.IntRange(2, 12).Draw(t, "p")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		s := wild(rng, p, rapid.IntRange(1, 6).Draw(t, "steps"))
		agree(t, someConfig(rng, p), sim.Part{Schedule: s, Words: s.Blocks + rng.IntN(10)})
	})
}

// A step of many messages is indexed, and the messages between two ranks still
// meet in the order of their programs.
func TestTheMessagesOfLongStepsMeetInOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 50 {
		const p, blocks = 4, 7
		var builders [p]sched.Builder
		move := func(from, to int) {
			some := sched.Range{Lo: 0, Hi: rng.IntN(blocks + 1)}
			builders[from].Send(sched.In, some, to)
			builders[to].Recv(from, sched.Out, some, sched.Combine(rng.IntN(3)))
		}
		for range 60 {
			to := 1 + rng.IntN(2)
			move(0, to)
			if rng.IntN(3) == 0 {
				builders[to].EndStep()
			}
		}
		for range 60 {
			from := 1 + rng.IntN(2)
			move(from, 3)
			if rng.IntN(3) == 0 {
				builders[from].EndStep()
			}
		}
		var programs [p]sched.Program
		for r := range programs {
			programs[r] = builders[r].Program()
		}
		s := &sched.Schedule{
			Collective: sched.AllReduce, Algorithm: "long", P: p, Blocks: blocks,
			Make: func(_ *sched.Builder, rank int) sched.Program { return programs[rank] },
		}
		agree(t, someConfig(rng, p), sim.Part{Schedule: s, Words: 5 * blocks})
	}
}

// Without a log, the times of the critical path are not kept but found again.
func TestTheCriticalPathIsTheSameWithoutALog(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range 500 {
		p := 2 + rng.IntN(20)
		s, c := wild(rng, p, 6), someConfig(rng, p)
		part := sim.Part{Schedule: s, Words: s.Blocks + rng.IntN(10)}
		got := must(sim.Run(c, part))
		c.Record = true
		want := must(sim.Run(c, part))
		if !slices.Equal(got.Path, want.Path) || got.Time != want.Time {
			t.Fatalf("%d ranks on %v, %+v:\n%+v, with a log\n%+v", p, c.Topology, c.Model, got.Path, want.Path)
		}
	}
	for _, a := range algo.Catalog() {
		for _, p := range []int{2, 8, 17, 32} {
			s, err := algo.New(a.Collective, a.Name, p, 0, algo.VariantBytes)
			if err != nil {
				continue // a restriction
			}
			c := sim.Config{Topology: must(topo.NewFull(p)), Model: model.Model{Ts: 0.3, Tw: 0.1, Th: 0.7, Top: 0.9}, AllPort: true}
			part := sim.Part{Schedule: s, Words: 3*s.Blocks + 1}
			got := must(sim.Run(c, part))
			c.Record = true
			want := must(sim.Run(c, part))
			if !slices.Equal(got.Path, want.Path) || got.Time != want.Time {
				t.Errorf("%v %s on %d ranks:\n%+v, with a log\n%+v", a.Collective, a.Name, p, got.Path, want.Path)
			}
		}
	}
}

// With Sync a step of copies alone waits for the others, too: here the last
// copies of the first and the last ranks, which combine 576 words each.
func TestWithSyncAStepOfCopiesAloneWaits(t *testing.T) {
	s := must(algo.New(sched.ReduceScatter, "direct", 9, 0, 0))
	c := sim.Config{Topology: must(topo.NewLinear(9)), Model: model.Model{Ts: 100, Tw: 3, Th: 2, Top: 1}, Sync: true, Record: true}
	r := must(sim.Run(c, sim.Part{Schedule: s, Words: 576}))
	if r.Time != 47426 || r.Steps != 2 {
		t.Errorf("%v in %d steps, want 47426 in 2", r.Time, r.Steps)
	}
	first := 0.0 // when the last rank has combined what its first step received
	for _, m := range r.Log {
		first = max(first, m.End)
	}
	for rank, took := range r.PerRank {
		if took.Combining != 8*576 {
			t.Errorf("rank %d combines for %v, want %d", rank, took.Combining, 8*576)
		}
		if took.End > first+8*576+576 {
			t.Errorf("rank %d ends at %v, more than two steps after the last message at %v", rank, took.End, first)
		}
	}
}

// Sums of decimals are rounded, and still the same message is first in a line.
func TestTheUnitOfTimeChangesNothing(t *testing.T) {
	const scale = 0.1
	rng := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		p := 2 + rng.IntN(30)
		s, c := wild(rng, p, 6), someConfig(rng, p)
		c.Model = model.Model{Ts: float64(rng.IntN(4)), Tw: float64(1 + rng.IntN(3)), Th: float64(rng.IntN(3)), Top: float64(rng.IntN(3))}
		c.Share, c.MemoryBandwidth = false, 0 // rates are rounded anyway
		if c.Between != nil {
			c.Between = &model.Model{Ts: float64(3 + rng.IntN(4)), Tw: float64(rng.IntN(6)), Th: c.Model.Th}
		}
		want := must(sim.Run(c, sim.Part{Schedule: s, Words: s.Blocks}))
		if b := c.Between; b != nil {
			c.Between = &model.Model{Ts: b.Ts * scale, Tw: b.Tw * scale, Th: b.Th * scale}
		}
		c.Model = model.Model{Ts: c.Model.Ts * scale, Tw: c.Model.Tw * scale, Th: c.Model.Th * scale, Top: c.Model.Top * scale}
		got := must(sim.Run(c, sim.Part{Schedule: s, Words: s.Blocks}))
		for rank := range want.PerRank {
			if got, want := got.PerRank[rank].End, want.PerRank[rank].End*scale; !near(got, want) {
				t.Fatalf("%d ranks on %v, %+v: rank %d ends at %v, and in another unit at %v", p, c.Topology, c.Model, rank, got, want)
			}
		}
	}
}

// wild returns a schedule of random messages.
func wild(rng *rand.Rand, p, steps int) *sched.Schedule {
	const blocks = 6
	someBlocks := func() sched.Range {
		lo := rng.IntN(blocks + 1)
		return sched.Range{Lo: lo, Hi: lo + rng.IntN(blocks+1-lo)}
	}
	someHow := func() sched.Combine { return sched.Combine(rng.IntN(3)) }
	builders := make([]sched.Builder, p)
	for range steps {
		for range rng.IntN(2 * p) {
			from, blocks := rng.IntN(p), someBlocks()
			var to []int
			for _, r := range rng.Perm(p)[:1+rng.IntN(2)] {
				if r != from {
					to = append(to, r)
					builders[r].Recv(from, sched.Out, blocks, someHow())
				}
			}
			builders[from].Send(sched.In, blocks, to...)
		}
		for r := range builders {
			if rng.IntN(3) == 0 {
				builders[r].Copy(sched.In, someBlocks(), sched.Out, 0, someHow())
			}
			if rng.IntN(3) > 0 {
				builders[r].EndStep()
			}
		}
	}
	programs := make([]sched.Program, p)
	for r := range programs {
		programs[r] = builders[r].Program()
	}
	return &sched.Schedule{
		Collective: sched.AllReduce, Algorithm: "wild", P: p, Blocks: blocks,
		Make: func(_ *sched.Builder, rank int) sched.Program { return programs[rank] },
	}
}
