package sim_test

import (
	"fmt"
	"testing"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/sim"
	"github.com/chorale-go/chorale/topo"
)

// simulate simulates one algorithm on a network. The schedule is the one that would
// be taken for a vector of algo.VariantBytes; a piece of it is so many words.
func simulate(t testing.TB, c sched.Collective, spec string, p int, network string, perPiece int, change func(*sim.Config)) *sim.Result {
	t.Helper()
	s, err := algo.New(c, spec, p, 0, algo.VariantBytes)
	if err != nil {
		t.Fatal(err)
	}
	top, err := topo.Parse(network, p)
	if err != nil {
		t.Fatal(err)
	}
	config := sim.Config{Topology: top, Model: model.Model{Ts: 10, Tw: 1}}
	if change != nil {
		change(&config)
	}
	r, err := sim.Run(config, sim.Part{Schedule: s, Words: wordsFor(s, perPiece)})
	if err != nil {
		t.Fatalf("%v %s on %d ranks, %s: %v", c, spec, p, network, err)
	}
	return r
}

// wordsFor returns the m at which every block of a schedule is so long.
func wordsFor(s *sched.Schedule, perPiece int) int {
	if s.Partitioned() {
		return s.Blocks / s.P * perPiece
	}
	return s.Blocks * perPiece
}

// On a network without congestion, the time of a schedule is that of its formula,
// whichever engine finds the time: contention-free, event by event, or with
// transfers that share a memory that is fast enough.
func TestASchedulesTimeIsItsFormulas(t *testing.T) {
	const perPiece = 12
	for _, a := range algo.Catalog() {
		for _, p := range []int{1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 17, 31, 33} {
			for _, spec := range algo.Variants(a, p) {
				s, err := algo.New(a.Collective, spec, p, 0, algo.VariantBytes)
				if err != nil || testing.Short() && p > 9 {
					continue // a restriction
				}
				cost, err := algo.Price(a.Collective, spec, p, 0, algo.VariantBytes, float64(perPiece*s.Blocks))
				if err != nil {
					t.Fatal(err)
				}
				for _, rates := range []model.Model{{Ts: 10, Tw: 1}, {Ts: 3, Tw: 2, Top: 0.5}} {
					for _, memory := range []float64{0, 1e9} {
						r := simulate(t, a.Collective, spec, p, "full", perPiece, func(c *sim.Config) {
							c.Model, c.AllPort, c.MemoryBandwidth = rates, a.Restrictions.AllPort, memory
						})
						want, least, most := rates.Time(cost), 1.0, 1.0
						switch a.Name {
						case "recursive-multiplying":
							most = 1.5 // a pair is late for its first exchange, which the formula leaves out
						case "hierarchical":
							least, most = 0.5, 1.1 // the formula is for hosts that have as many ranks
						}
						if r.Time < want*least*(1-1e-9) || r.Time > want*most*(1+1e-9) {
							t.Errorf("%v %s p=%d memory=%v: %v, formula %v", a.Collective, spec, p, memory, r.Time, want)
						}
					}
				}
			}
		}
	}
}

// BenchmarkMessages measures a whole simulation: making the programs, matching
// them, and the result.
func BenchmarkMessages(b *testing.B) {
	for _, bench := range []struct {
		c       sched.Collective
		spec    string
		p       int
		network string
	}{
		{sched.AllReduce, "recursive-doubling", 1 << 12, "hypercube"},
		{sched.AllReduce, "recursive-doubling", 1 << 16, "hypercube"},
		{sched.AllToAll, "pairwise", 1 << 10, "full"},
		{sched.AllGather, "ring", 1 << 10, "full"},
		{sched.AllToAll, "ecube", 1 << 10, "hypercube"},
		{sched.AllGather, "direct", 1 << 10, "full"},
		{sched.AllToAll, "pairwise", 1 << 10, "torus:32x32"},
		{sched.AllToAll, "pairwise", 1 << 10, "ring"},
	} {
		b.Run(fmt.Sprintf("%v/%s/p=%d/%s", bench.c, bench.spec, bench.p, bench.network), func(b *testing.B) {
			messages := 0
			for b.Loop() {
				messages += simulate(b, bench.c, bench.spec, bench.p, bench.network, 1024, nil).Messages
			}
			b.ReportMetric(float64(messages)/b.Elapsed().Seconds(), "messages/s")
		})
	}
}
