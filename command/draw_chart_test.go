package command

import (
	"fmt"
	"math"
	"testing"

	"github.com/chorale-go/chorale/draw"
	"github.com/chorale-go/chorale/sched"
)

// broadcasts is a chart of two broadcast algorithms on a hypercube.
func broadcasts(p, m int, ts, tw float64) *sweep {
	return &sweep{
		s: &simulation{
			combination: combination{topology: "hypercube"}, placement: "identity", memory: sched.DefaultMemory,
			networkRules: networkRules{
				ts: cost(ts), tw: cost(tw),
				ports: choice{value: "single"}, switching: choice{value: "cut-through"}, congestion: choice{value: "queue"},
			},
		},
		collective: sched.Bcast, by: byWords, p: p, m: m, portsPerAlgorithm: true,
	}
}

var bothBroadcasts = []string{"binomial", "scatter-allgather"}

// CLAIM I5: m* follows from ts, tw and p, and the simulator agrees on both sides.
func TestSplittingABroadcastPaysFromTheCrossoverOn(t *testing.T) {
	if testing.Short() {
		t.Skip("nothing of it is concurrent")
	}
	for _, p := range []int{4, 8, 16, 64, 256, 1024} {
		for _, charges := range [][2]float64{{1e4, 1}, {3e5, 7}, {123456.789, 0.3}} {
			t.Run(fmt.Sprintf("%d/%v", p, charges), func(t *testing.T) {
				v := broadcasts(p, 1<<22, charges[0], charges[1])
				data, err := v.chartData(bothBroadcasts)
				if err != nil || len(data.Crossovers) != 1 {
					t.Fatalf("crossovers %+v, error %v: want one", data.Crossovers, err)
				}
				lg := math.Log2(float64(p))
				want := charges[0] * lg / (charges[1] * (lg - 2*float64(p-1)/float64(p)))
				got := data.Crossovers[0].At.X
				if math.Abs(got-want) > want*1e-9 {
					t.Errorf("m* = %v: want %v", got, want)
				}
				before, after := (int(got)/p-1)*p, (int(got)/p+1)*p // pieces are equal there
				if winner(t, v, before) != bothBroadcasts[0] || winner(t, v, after) != bothBroadcasts[1] {
					t.Errorf("m* = %v: %s is simulated to win at %d, %s at %d", got, winner(t, v, before), before, winner(t, v, after), after)
				}
			})
		}
	}
}

// winner returns the algorithm that takes less time in the simulator.
func winner(t *testing.T, v *sweep, m int) string {
	t.Helper()
	var times []float64
	for _, spec := range bothBroadcasts {
		time, err := v.simulate(spec, v.p, m, false)
		if err != nil {
			t.Fatal(err)
		}
		times = append(times, time)
	}
	if times[0] < times[1] {
		return bothBroadcasts[0]
	}
	return bothBroadcasts[1]
}

func TestTwoRanksNeverGainBySplitting(t *testing.T) {
	data, err := broadcasts(2, 1<<20, 10, 1).chartData(bothBroadcasts)
	if err != nil || len(data.Crossovers) != 0 {
		t.Errorf("crossovers %+v, error %v: want none", data.Crossovers, err)
	}
}

func TestChartsOfManyRanksAreOfFormulasAlone(t *testing.T) {
	v := broadcasts(2048, 1024, 10, 1)
	data, err := v.chartData(bothBroadcasts)
	if err != nil {
		t.Fatal(err)
	}
	for _, series := range data.Series {
		if len(series.Simulated) > 0 || len(series.Formula) < 100 {
			t.Errorf("%s: %d points simulated, %d of the formula", series.Name, len(series.Simulated), len(series.Formula))
		}
	}
	if want := "ts 10, tw 1, not simulated, being more than 1024 ranks"; data.Note != want {
		t.Errorf("note %q: want %q", data.Note, want)
	}
}

// A crossover between samples is the first number of ranks for which another
// algorithm is cheaper, too.
func TestCrossoversAgainstRanksAreExact(t *testing.T) {
	v := broadcasts(100000, 1, 10, 0)
	v.by, v.s.topology = byRanks, "full"
	specs := []string{"linear", "binomial"}
	// p−1 messages one after another against ⌈log p⌉: equal up to 3.
	data, err := v.chartData(specs)
	if err != nil || len(data.Crossovers) != 1 || data.Crossovers[0].At.X != 4 {
		t.Errorf("crossovers %+v, error %v: want one at 4", data.Crossovers, err)
	}
}

func TestMarksContradictACrossoverBesideItAlone(t *testing.T) {
	steep := []draw.Point{{X: 1, Y: 1}, {X: 2, Y: 2}, {X: 4, Y: 4}, {X: 8, Y: 8}}
	flat := []draw.Point{{X: 1, Y: 3}, {X: 2, Y: 3}, {X: 4, Y: 3}, {X: 8, Y: 3}}
	for _, c := range []struct {
		low, at, high float64
		want          bool
	}{{0, 3, 9, false}, {0, 1.5, 9, true}, {0, 5, 9, true}, {0, 5, 6, true}, {4.5, 5, 9, false}, {0, 1.5, 2, false}} {
		if got := contradicted(steep, flat, c.low, c.at, c.high); got != c.want {
			t.Errorf("%+v: contradicted %v", c, got)
		}
	}
}
