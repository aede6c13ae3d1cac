package explain_test

import (
	"errors"
	"math"
	"testing"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/internal/explain"
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// exampleMachine has every cost that a profile can have.
func exampleMachine(processors int) explain.Machine {
	m := olderMachine(processors)
	l := &m.Profile.Links[0]
	l.Send, l.Receive, l.RendezvousFrom = model.Line(0.1, 0.00002), model.Line(0.15, 0.00006), 512
	return m
}

// olderMachine is that of a profile without the parts of messages.
func olderMachine(processors int) explain.Machine {
	return explain.Machine{Transport: "shm", Profile: &model.Profile{
		Version: model.ProfileVersion,
		Node: model.Node{
			Processors: processors, Copy: model.Line(0.01, 0.0001),
			Combine:    []model.Combining{{Type: "float32", Bytes: 4, Curve: model.Line(0.02, 0.0003)}},
			Memory:     []model.Bandwidth{{Movers: 1, Rate: model.Exactly(8000)}},
			MemoryFrom: 4096,
		},
		Links: []model.Link{{
			Transport: "shm", OneWay: model.Line(0.4, 0.0001), Exchange: model.Line(0.5, 0.00017),
			Call: model.Exactly(0.2), Step: model.Exactly(0.1), Switch: model.Exactly(1.3),
		}},
	}}
}

// twoHosts puts a machine's ranks on two hosts, by turns, with a network between them.
func twoHosts(m explain.Machine, ranks int) explain.Machine {
	sizes, places, err := algo.PlaceHosts("cyclic:2", ranks)
	if err != nil {
		panic(err)
	}
	m.Hosts = &explain.Hosts{Sizes: sizes, Places: places, Between: model.Link{
		Transport: "tcp", OneWay: model.Line(20, 0.001), Exchange: model.Line(25, 0.001),
		Send: model.Line(3, 0.0001), Receive: model.Line(4, 0.0002), RendezvousFrom: 1 << 12,
	}}
	return m
}

func TestThePartsOfATimeAddUpToIt(t *testing.T) {
	machines := []explain.Machine{exampleMachine(2), exampleMachine(64), olderMachine(2), olderMachine(64)}
	for p := range 9 {
		if p > 1 {
			machines = append(machines, twoHosts(exampleMachine(2), p), twoHosts(olderMachine(64), p))
		}
	}
	for _, m := range machines {
		for _, a := range algo.Catalog() {
			for _, p := range []int{1, 2, 5, 8} {
				if m.Hosts != nil && len(m.Hosts.Places) != p {
					continue
				}
				for _, bytes := range []int{0, 4, 1000, 1 << 16} {
					if a.Collective == sched.Barrier && bytes > 0 {
						continue
					}
					c := explain.Call{Collective: a.Collective, Algorithm: a.Name, Ranks: p, Bytes: bytes}
					if _, err := c.Schedule(); err != nil {
						continue // it does not take so many ranks
					}
					time, parts, err := m.Parts(c)
					if err != nil {
						t.Errorf("%+v: %v", c, err)
						continue
					}
					sum := 0.0
					for _, part := range parts {
						sum += part.Time
						if part.Name == explain.Other && math.Abs(part.Time) > 1e-9 {
							t.Errorf("%+v: %v µs belong to no effect", c, part.Time)
						}
					}
					if alone, err := m.Simulate(c); err != nil || alone != time || math.Abs(sum-time) > 1e-9*time {
						t.Errorf("%+v: parts of %v µs, in all %v: want the simulated time, %v (%v)", c, sum, time, alone, err)
					}
				}
			}
		}
	}
}

// Where each rank has a processor, nothing is shared but the memory.
func TestAPartIsZeroWhereItsEffectIsAbsent(t *testing.T) {
	m := exampleMachine(64)
	_, parts, err := m.Parts(explain.Call{Collective: sched.Bcast, Algorithm: "binomial", Ranks: 8, Bytes: 64})
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range parts {
		positive := part.Name == explain.Startups || part.Name == explain.Bytes || part.Name == explain.Steps
		if got := part.Time > 0; got != positive {
			t.Errorf("%s takes %v µs", part.Name, part.Time)
		}
	}
}

func TestATooLargeCallIsNotSimulated(t *testing.T) {
	m := exampleMachine(64)
	c := explain.Call{Collective: sched.AllToAll, Algorithm: "pairwise", Ranks: 400, Bytes: 8}
	var large *explain.TooLargeError
	if _, err := m.Simulate(c); !errors.As(err, &large) || large.Messages < explain.MaxMessages {
		t.Errorf("the error is %v", err)
	}
	if all := m.Rivals(c, explain.Candidates(c.Collective), explain.Constraints{}); len(all) == 0 {
		t.Error("no algorithm with fewer messages was simulated")
	}
	c.Ranks = 1 << 24
	if _, err := m.Simulate(c); !errors.As(err, &large) || large.Ranks != c.Ranks {
		t.Errorf("the error is %v", err)
	}
	if all := m.BySize(c, explain.Octaves(explain.MinBytes, explain.MaxBytes), explain.Candidates(c.Collective), explain.Constraints{}); all != nil {
		t.Errorf("%d sizes are simulated among %d ranks", len(all), c.Ranks)
	}
	if all := m.Rivals(c, explain.Candidates(c.Collective), explain.Constraints{}); len(all) > 0 {
		t.Errorf("%d algorithms are simulated among %d ranks", len(all), c.Ranks)
	}
}

func TestRivalsMeetTheConstraintsOfTheCall(t *testing.T) {
	m := exampleMachine(64)
	c := explain.Call{Collective: sched.AllReduce, Ranks: 8, Bytes: 1024}
	all := m.Rivals(c, explain.Candidates(c.Collective), explain.Constraints{Ordered: true})
	if len(all) == 0 {
		t.Fatal("no algorithm")
	}
	for i, r := range all {
		if only, err := algo.Restricted(c.Collective, r.Algorithm, c.Ranks); err != nil || only.Commutative {
			t.Errorf("%s is for operations that commute (%v)", r.Algorithm, err)
		}
		if i > 0 && r.Time < all[i-1].Time {
			t.Errorf("%s is behind a slower one", r.Algorithm)
		}
	}
}

// choose chooses short below some number, and long from there on.
func choose(from int) func(int) (explain.Choice, error) {
	return func(at int) (explain.Choice, error) {
		if at < from {
			return explain.Choice{Algorithm: "short"}, nil
		}
		return explain.Choice{Algorithm: "long"}, nil
	}
}

func TestAChangeBetweenTwoPointsIsFoundToTheByte(t *testing.T) {
	for _, from := range []int{9, 16, 5000, 8191, 8192} {
		got, err := explain.Changes(explain.Octaves(8, 8192), true, choose(from), nil)
		if err != nil || len(got) != 2 || got[0].From != 8 || got[1].From != from || got[1].Selected != "long" {
			t.Errorf("a change at %d: got %+v, %v", from, got, err)
		}
	}
}

// Less than a hundredth does not make another algorithm the fastest.
func TestTheFastestIsWhatACallRunsUnlessAnotherIsClearlyFaster(t *testing.T) {
	sample := func(at int, short, long float64) explain.Sample {
		s := explain.Sample{At: at, Times: []explain.Rival{{Algorithm: "short", Time: short}, {Algorithm: "long", Time: long}}}
		if long < short {
			s.Times[0], s.Times[1] = s.Times[1], s.Times[0]
		}
		return s
	}
	samples := []explain.Sample{sample(8, 1, 0.995), sample(16, 2, 1), sample(32, 3, 2.99), sample(64, 3, 4)}
	got, err := explain.Changes(explain.Octaves(8, 64), true, choose(1000), samples)
	want := []explain.Range{{From: 8, Selected: "short", Fastest: "short"}, {From: 16, Selected: "short", Fastest: "long"}, {From: 32, Selected: "short", Fastest: "short"}}
	if err != nil || len(got) != len(want) {
		t.Fatalf("got %+v, %v: want %+v", got, err, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %+v: want %+v", got[i], want[i])
		}
	}
}
