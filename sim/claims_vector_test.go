package sim_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/sim"
)

// Of N values, all are exchanged log P times, or half of them, then a quarter,
// and so on, and back.
//
// CLAIM V1 V3
func TestSimpleExchangeMovesAllAndRecursiveHalvingLess(t *testing.T) {
	hold(t, []claim{
		{sched.AllReduce, "recursive-doubling", "hypercube full", false, func(p, n float64) model.Cost { return combined(lg(p), n) }},
		{sched.AllReduce, "recursive-halving", "hypercube full", false, func(p, n float64) model.Cost {
			return model.Cost{Startups: 2 * lg(p), Words: 2 * n * (p - 1) / p, Combines: n * (p - 1) / p}
		}},
	})
	for p := 2; p <= 64; p *= 2 {
		simple := simulateOn(t, "hypercube", schedule(t, sched.AllReduce, "recursive-doubling", p, 0), 64)
		halving := simulateOn(t, "hypercube", schedule(t, sched.AllReduce, "recursive-halving", p, 0), 64)
		if halving.Messages != 2*simple.Messages || p > 2 && halving.Words >= simple.Words {
			t.Errorf("P %d: %d messages, %d words, and by simple exchange %d, %d", p, halving.Messages, halving.Words, simple.Messages, simple.Words)
		}
	}
}

// CLAIM V2
func TestTheExchangeOfEmptyTokensIsABarrierOfLogPStartUps(t *testing.T) {
	hold(t, []claim{{sched.Barrier, "butterfly", "hypercube full", false, func(p, _ float64) model.Cost { return moved(lg(p), 0) }}})
}

// After k stages n/2^k of the values are left, and d − k exchanges.
func hybrid(d, k int, n float64) model.Cost {
	left := n / math.Exp2(float64(k))
	return model.Cost{
		Startups: float64(d + k),
		Words:    2*(n-left) + float64(d-k)*left,
		Combines: n - left + float64(d-k)*left,
	}
}

// bestStages returns the number of stages to choose. Stage k + 1 costs a start-up
// more, and saves n/2^(k+1) ((d−k−1) tw + (d−k) top). Each saves less than the
// one before, so the best number is how many save more than ts.
func bestStages(d int, n float64, m model.Model) (k int) {
	for k < d && m.Ts < n/math.Exp2(float64(k+1))*(float64(d-k-1)*m.Tw+float64(d-k)*m.Top) {
		k++
	}
	return k
}

// CLAIM V4
func TestTheBestNumberOfHalvingStagesIsFound(t *testing.T) {
	found := make(map[int]bool)
	for d := 1; d <= 10; d++ {
		p := 1 << d
		if p > largest() {
			break
		}
		for _, price := range []model.Model{{Ts: 10, Tw: 1}, {Ts: 150, Tw: 0.3, Top: 0.07}, {Ts: 1000, Tw: 1, Top: 2}, {Ts: 1, Tw: 0.01, Top: 0.01}} {
			for _, n := range []int{p, 16 * p} {
				least, best := math.Inf(1), 0
				for k := range d + 1 {
					s := schedule(t, sched.AllReduce, fmt.Sprintf("halving-exchange,stages=%d", k), p, 0)
					r := simulateOn(t, "hypercube", s, n, func(c *sim.Config) { c.Model = price })
					takes(t, fmt.Sprintf("P %d, N %d, %+v, %d stages", p, n, price, k), r, hybrid(d, k, float64(n)))
					if r.Time < least*(1-1e-12) {
						least, best = r.Time, k
					}
				}
				if got := bestStages(d, float64(n), price); got != best {
					t.Errorf("P %d, N %d, %+v: %d stages take least, and the formula says %d", p, n, price, best, got)
				}
				found[best] = true
			}
		}
	}
	if len(found) < 5 {
		t.Errorf("only %v are ever the best", found)
	}
}

// With other P than powers of two, some tasks hand their vector to a neighbor
// before, and get the result after.
//
// CLAIM V3 V4
func TestFoldingCostsAMessageBeforeAndOneAfter(t *testing.T) {
	for _, p := range []int{3, 5, 6, 7, 12, 33, 100} {
		d := floorLog(p)
		for k := range d + 1 {
			n := 3 << k
			r := simulateOn(t, "full", schedule(t, sched.AllReduce, fmt.Sprintf("halving-exchange,stages=%d", k), p, 0), n)
			takes(t, fmt.Sprintf("P %d, %d stages", p, k), r, hybrid(d, k, float64(n)).Plus(combined(1, float64(n))).Plus(moved(1, float64(n))))
		}
	}
}

// Two children, one after another, on each of d − 1 levels: a tree of P = 2^d − 1
// takes 2 (d − 1)(ts + tw N), and of its ranks only P − 1 in 2 (d − 1) steps
// ever send. Pieces over the hypercube take less time as soon as N is not short.
//
// CLAIM V5
func TestTheBinaryTreeIsMostlyIdleAndPiecesAreFasterThanIt(t *testing.T) {
	for d := 2; d <= 10; d++ {
		p := 1<<d - 1
		tree := schedule(t, sched.Bcast, "binary-tree,segment=0", p, 0)
		for _, price := range prices {
			r := simulateOn(t, "full", tree, 7, func(c *sim.Config) { c.Model = price })
			takes(t, fmt.Sprintf("P %d, %+v", p, price), r, moved(float64(2*(d-1)), 7))
		}
		r := simulateOn(t, "full", tree, 7)
		if r.Steps != 2*(d-1) || r.Messages != p-1 {
			t.Errorf("P %d: %d messages in %d steps", p, r.Messages, r.Steps)
		}
		for _, step := range r.PerStep {
			if 2*step.Messages > p+1 {
				t.Errorf("P %d: %d send in one step", p, step.Messages)
			}
		}
		cube, n := p+1, 100*(p+1)
		slow := simulateOn(t, "full", schedule(t, sched.Bcast, "binary-tree,segment=0", cube, 0), n)
		fast := simulateOn(t, "hypercube", schedule(t, sched.Bcast, "scatter-allgather", cube, 0), n)
		takes(t, fmt.Sprintf("pieces, P %d", cube), fast, model.Cost{Startups: float64(2 * d), Words: 200 * float64(cube-1)})
		if cube >= 16 && fast.Time >= slow.Time {
			t.Errorf("P %d, N %d: pieces take %v, the tree %v", cube, n, fast.Time, slow.Time)
		}
	}
}
