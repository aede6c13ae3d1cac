package sim_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/sim"
)

// Pieces of m/p words: a scatter and an allgather of them take
// 2 (log p ts + (p − 1) tw m/p), and so do their duals. Of the combining each
// rank has its share.
//
// CLAIM I1 I2 I3
func TestSplittingTheMessageDoublesStartUpsAndMovesTwoVectors(t *testing.T) {
	cost := func(combines float64) func(p, m float64) model.Cost {
		return func(p, m float64) model.Cost {
			return model.Cost{Startups: 2 * lg(p), Words: 2 * (p - 1) * m / p, Combines: combines * (p - 1) * m / p}
		}
	}
	hold(t, []claim{
		{sched.Bcast, "scatter-allgather", "hypercube full", false, cost(0)},
		{sched.Reduce, "reduce-scatter-gather", "hypercube full", false, cost(1)},
		{sched.AllReduce, "reduce-scatter-allgather", "hypercube full", false, cost(1)},
		{sched.AllReduce, "recursive-halving", "hypercube full", false, cost(1)},
	})
}

// A reduction and then a broadcast, each split, gather at the root what they
// scatter again. Without these two in the middle an allreduce takes half as
// long, but for the combining.
//
// CLAIM I3
func TestInAnAllreduceGatherAndScatterCancel(t *testing.T) {
	for p := 2; p <= largest(); p *= 2 {
		m := 3 * p
		both := playAll(t, "hypercube", p, []sim.Part{
			{Schedule: schedule(t, sched.Reduce, "reduce-scatter-gather", p, 0), Words: m},
			{Schedule: schedule(t, sched.Bcast, "scatter-allgather", p, 0), Words: m},
		})
		once := simulateOn(t, "hypercube", schedule(t, sched.AllReduce, "recursive-halving", p, 0), m)
		combining := both.Config.Model.Top * float64(m-3)
		equal(t, fmt.Sprintf("p %d", p), both.Time-combining, 2*(once.Time-combining))
	}
}

// On an array and on a mesh the pieces go round lines, from neighbor to
// neighbor: more start-ups than on a hypercube, and as few words.
//
// CLAIM I4
func TestArrayAndMeshGainFromSplittingToo(t *testing.T) {
	for p := 4; p <= largest(); p *= 2 {
		rows, columns := sides(p)
		for _, on := range []struct {
			network, parts, rounds string  // algorithms: from or to one, and between all
			steps                  float64 // to go round
			largest                int     // p, so that the test is short
		}{
			{"linear", "binomial", "ring", float64(p - 1), 256},
			{"ring", "binomial", "ring", float64(p - 1), 256},
			{"mesh", "mesh", "mesh", float64(rows + columns - 2), 1024},
		} {
			if p > min(on.largest, largest()) {
				continue
			}
			part := func(c sched.Collective, spec string) *sched.Schedule { return schedule(t, c, spec, p, 0) }
			const k = 64 // words of a piece
			sequence := func(parts ...*sched.Schedule) *sim.Result {
				var all []sim.Part
				for _, s := range parts {
					all = append(all, sim.Part{Schedule: s, Words: k})
				}
				return playAll(t, on.network, p, all)
			}
			words := 2 * k * float64(p-1)
			bcast := sequence(part(sched.Scatter, on.parts), part(sched.AllGather, on.rounds))
			reduce := sequence(part(sched.ReduceScatter, on.rounds), part(sched.Gather, on.parts))
			both := sequence(part(sched.ReduceScatter, on.rounds), part(sched.AllGather, on.rounds))
			takes(t, fmt.Sprintf("bcast, p %d on %s", p, on.network), bcast, model.Cost{Startups: lg(float64(p)) + on.steps, Words: words})
			takes(t, fmt.Sprintf("reduce, p %d on %s", p, on.network), reduce, model.Cost{Startups: lg(float64(p)) + on.steps, Words: words, Combines: words / 2})
			takes(t, fmt.Sprintf("allreduce, p %d on %s", p, on.network), both, model.Cost{Startups: 2 * on.steps, Words: words, Combines: words / 2})

			// Long messages gain, as m* for these says.
			whole := part(sched.Bcast, "binomial")
			for _, price := range prices[:2] {
				crossover := on.steps * price.Ts / (price.Tw * (lg(float64(p)) - 2*float64(p-1)/float64(p)))
				for _, m := range around(crossover, p) {
					at := func(c *sim.Config) { c.Model = price }
					split := playAll(t, on.network, p, []sim.Part{
						{Schedule: part(sched.Scatter, on.parts), Words: m / p}, {Schedule: part(sched.AllGather, on.rounds), Words: m / p},
					}, at)
					if gains := split.Time < simulateOn(t, on.network, whole, m, at).Time; gains != (float64(m) > crossover) {
						t.Errorf("p %d on %s, m %d, m* %v: splitting gains: %v", p, on.network, m, crossover, gains)
					}
				}
			}
		}
	}
}

// around returns the multiples of p next to m, below and above.
func around(m float64, p int) (all []int) {
	below := (int(math.Ceil(m)) - 1) / p * p
	if below > 0 {
		all = append(all, below)
	}
	above := (int(m)/p + 1) * p
	return append(all, above)
}

// Both take the same time at m* = ts log p / (tw (log p − 2(p−1)/p)). For two
// ranks there is no such m: splitting never gains.
//
// CLAIM I5
func TestBelowTheCrossoverWholeMessagesWinAndAboveItPieces(t *testing.T) {
	for _, price := range []model.Model{{Ts: 10, Tw: 1}, {Ts: 150, Tw: 0.3}, {Ts: 2, Tw: 0.0008}, {Ts: 1000, Tw: 7}, {Ts: 34, Tw: 2}} {
		for p := 2; p <= largest(); p *= 2 {
			whole, pieces := schedule(t, sched.Bcast, "binomial", p, 0), schedule(t, sched.Bcast, "scatter-allgather", p, 0)
			margin := func(m int) float64 {
				at := func(c *sim.Config) { c.Model = price }
				return simulateOn(t, "hypercube", whole, m, at).Time - simulateOn(t, "hypercube", pieces, m, at).Time
			}
			gain := lg(float64(p)) - 2*float64(p-1)/float64(p)
			if p == 2 {
				if margin(2) >= 0 || margin(1<<30) >= 0 {
					t.Errorf("p 2, %+v: pieces win", price)
				}
				continue
			}
			crossover := price.Ts * lg(float64(p)) / (price.Tw * gain)
			for _, m := range around(crossover, p) {
				switch d := margin(m); {
				case float64(m) < crossover && d >= 0:
					t.Errorf("p %d, %+v, m %d < m* %v: pieces win", p, price, m, crossover)
				case float64(m) > crossover && d <= 0:
					t.Errorf("p %d, %+v, m %d > m* %v: whole messages win", p, price, m, crossover)
				}
			}
		}
	}
}
