package sim_test

import (
	"fmt"
	"testing"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/sim"
)

// Message by message, a scatter is a broadcast; but in step k each of the 2^(k−1)
// messages has only the blocks of those behind it, p/2^k. The gather is all that
// reversed.
//
// CLAIM S1 S2
func TestScatterAndGatherKeepTheBroadcastsPatternAndHalveTheWords(t *testing.T) {
	const m = 7
	for d := 1; d <= 10; d++ {
		p := 1 << d
		bcast := simulateOn(t, "hypercube", schedule(t, sched.Bcast, "binomial", p, 0), m, record)
		scatter := simulateOn(t, "hypercube", schedule(t, sched.Scatter, "binomial", p, 0), m, record)
		gather := simulateOn(t, "hypercube", schedule(t, sched.Gather, "binomial", p, 0), m, record)
		if said(scatter) != said(bcast) || reversed(gather) != said(bcast) {
			t.Errorf("p %d: %s, and %s, want %s", p, said(scatter), reversed(gather), said(bcast))
		}
		for _, message := range scatter.Log {
			if want := m * p >> (message.Step + 1); message.Words != want {
				t.Errorf("p %d, scatter, step %d: %d→%d has %d words, want %d", p, message.Step+1, message.From, message.To, message.Words, want)
			}
		}
		for _, message := range gather.Log {
			if want := m << message.Step; message.Words != want {
				t.Errorf("p %d, gather, step %d: %d→%d has %d words, want %d", p, message.Step+1, message.From, message.To, message.Words, want)
			}
		}
	}
}

// CLAIM S3
func TestScatterAndGatherCostTheSameOnArrayMeshAndCube(t *testing.T) {
	cost := func(p, m float64) model.Cost { return model.Cost{Startups: lg(p), Words: m * (p - 1)} }
	const everywhere = "linear ring mesh torus hypercube tree"
	hold(t, []claim{
		{sched.Scatter, "binomial", everywhere, false, cost},
		{sched.Gather, "binomial", everywhere, false, cost},
		{sched.Scatter, "mesh", "mesh torus", false, cost},
		{sched.Gather, "mesh", "mesh torus", false, cost},
	})
}

// For other numbers of ranks, the log is rounded up, and the words are the same.
//
// CLAIM S3 S4
func TestAScatterNeedsNoMoreWordsThanItsSourceMustSend(t *testing.T) {
	const m = 5
	for _, p := range []int{2, 3, 5, 7, 8, 12, 33, 100, 1000} {
		for _, c := range []sched.Collective{sched.Scatter, sched.Gather} {
			for _, root := range []int{0, p / 3, p - 1} {
				for _, on := range []string{"linear", "ring"} {
					what := fmt.Sprintf("%v, p %d, root %d on %s", c, p, root, on)
					s := schedule(t, c, "binomial", p, root)
					takes(t, what, simulateOn(t, on, s, m), model.Cost{Startups: float64(ceilLog(p)), Words: float64(m * (p - 1))})
					least := algo.LowerBound(c, p, float64(m*p))
					words := simulateOn(t, on, s, m, func(c *sim.Config) { c.Model = model.Model{Tw: 1} })
					equal(t, what+", words alone", words.Time, least.Words)
					equal(t, what+", the root's port is never idle", words.Time, words.PerRank[root].Sending+words.PerRank[root].Receiving)
				}
			}
		}
	}
}
