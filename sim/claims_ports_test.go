package sim_test

import (
	"fmt"
	"testing"

	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/sim"
)

func allPorts(c *sim.Config) { c.AllPort = true }

// A rank that has p − 1 messages to send and p − 1 to take, on links of their
// own, needs p − 1 times as long for them with one port as with all. With one
// port it sends and receives at once.
//
// CLAIM I6
func TestOnePortTakesTurnsAndAllPortsDoNot(t *testing.T) {
	for _, p := range []int{2, 3, 5, 8, 17} {
		s := schedule(t, sched.AllGather, "direct", p, 0)
		takes(t, fmt.Sprintf("p %d, all ports", p), simulateOn(t, "full", s, 7, allPorts), moved(1, 7))
		one := simulateOn(t, "full", schedule(t, sched.AllGather, "ring", p, 0), 7)
		takes(t, fmt.Sprintf("p %d, one port", p), one, moved(float64(p-1), 7))
		equal(t, fmt.Sprintf("p %d, the way out is never idle", p), one.PerRank[0].Sending, one.Time)
		equal(t, fmt.Sprintf("p %d, nor the way in", p), one.PerRank[0].Receiving, one.Time)
	}
	exchange := simulateOn(t, "full", schedule(t, sched.AllReduce, "recursive-doubling", 2, 0), 7)
	takes(t, "an exchange", exchange, combined(1, 7))
}

// rotations are the algorithms that split each message over the dimensions of a
// hypercube, what they take with all ports, and what one port needs.
var rotations = []struct {
	claim
	onePort string
	largest int // p, so that the test is short
}{
	{claim{takes: func(p, m float64) model.Cost { return model.Cost{Startups: lg(p), Words: m} }, c: sched.Bcast}, "binomial", 1024},
	{claim{takes: func(p, m float64) model.Cost {
		return model.Cost{Startups: lg(p), Words: m, Combines: lg(p) * m}
	}, c: sched.Reduce}, "binomial", 1024},
	{claim{takes: personal, c: sched.Scatter}, "binomial", 1024},
	{claim{takes: personal, c: sched.Gather}, "binomial", 1024},
	{claim{takes: personal, c: sched.AllGather}, "recursive-doubling", 512},
	{claim{takes: func(p, m float64) model.Cost {
		return personal(p, m).Plus(model.Cost{Combines: (p - 1) * m})
	}, c: sched.ReduceScatter}, "recursive-halving", 512},
	{claim{takes: func(p, m float64) model.Cost { return model.Cost{Startups: lg(p), Words: p * m / 2} }, c: sched.AllToAll}, "hypercube", 256},
}

func personal(p, m float64) model.Cost {
	return model.Cost{Startups: lg(p), Words: (p - 1) * m / lg(p)}
}

// The words' term is log p times smaller than with one port, and no link has two
// messages in a step.
//
// CLAIM I7
func TestAllPortsOfAHypercubeMoveWordsLogPTimesFaster(t *testing.T) {
	words := model.Model{Tw: 1}
	for _, r := range rotations {
		r.claim.spec, r.networks, r.allPort = "rotated", "hypercube", true
		for p := 2; p <= min(r.largest, largest()); p *= 2 {
			r.holds(t, p)
			all, one := schedule(t, r.c, "rotated", p, 0), schedule(t, r.c, r.onePort, p, 0)
			m := wordsFor(all, 1)
			fast := simulateOn(t, "hypercube", all, m, allPorts, func(c *sim.Config) { c.Model = words })
			slow := simulateOn(t, "hypercube", one, m, func(c *sim.Config) { c.Model = words })
			equal(t, fmt.Sprintf("%v, p %d", r.c, p), slow.Time, lg(float64(p))*fast.Time)
			used := 0 // steps with messages
			for _, step := range fast.PerStep {
				if step.Messages > 0 {
					used++
				}
			}
			if used != floorLog(p) {
				t.Errorf("%v, p %d: %d steps, want %d", r.c, p, used, floorLog(p))
			}
		}
	}
}

// A memory that moves b words in the time in which a link moves one keeps b of
// the log p links busy: the words take log p / b times as long, as with b ports,
// until with b = 1 nothing is gained.
//
// CLAIM I8
func TestAllPortsGainNoMoreThanTheMemoryMoves(t *testing.T) {
	for _, r := range rotations {
		for p := 2; p <= min(r.largest, 128, largest()); p *= 2 {
			s := schedule(t, r.c, "rotated", p, 0)
			m := wordsFor(s, 3)
			for _, price := range prices[:2] {
				for _, links := range []float64{0.5, 1, 1.5, 2, 3, lg(float64(p)), 20} {
					got := simulateOn(t, "hypercube", s, m, allPorts, func(c *sim.Config) { c.Model, c.MemoryBandwidth = price, links/price.Tw })
					want := r.takes(float64(p), float64(m))
					want.Words *= max(1, lg(float64(p))/links)
					takes(t, fmt.Sprintf("%v, p %d, memory for %v links", r.c, p, links), got, want)
				}
			}
		}
	}
}
