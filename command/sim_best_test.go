package command

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/sched"
)

// If the pieces of a vector differ, the time lies between those of pieces that are all
// as short as the shortest and all as long as the longest.
//
// CLAIM I5 V4
func TestTheBestsSimulatedTimeIsItsPrice(t *testing.T) {
	taken := make(map[string]bool)
	for _, c := range sched.Collectives() {
		for _, p := range []int{1, 2, 3, 5, 8, 12, 16, 33} {
			for _, m := range []int{1, 17, 1000, 50000} {
				for _, more := range []string{"", "--ts 500 --tw 0.5 --top 0.25", "--ts 1 --top 2 --ports all"} {
					args := fmt.Sprintf("%v -n %d -m %d --algorithm best %s", c, p, m, more)
					switch c {
					case sched.Barrier:
						args = strings.Replace(args, fmt.Sprint("-m ", m), "", 1)
					case sched.Shift:
						args += fmt.Sprint(" --root ", p/2)
					}
					e, err := parseScenario(strings.Fields(args)...)
					if err != nil {
						t.Fatalf("%s: %v", args, err)
					}
					withinRounding(t, args, e)
					name, _, _ := strings.Cut(e.algorithm, ",")
					taken[e.collective+" "+name] = true
				}
			}
		}
	}
	for _, one := range []string{"bcast binomial", "bcast circulant", "bcast rotated", "allreduce recursive-doubling", "allreduce circulant", "alltoall pairwise"} {
		if !taken[one] {
			t.Errorf("%s is never the best: %v", one, taken)
		}
	}
}

// withinRounding simulates a scenario and compares the time with its price.
func withinRounding(t *testing.T, what string, e *scenario) {
	t.Helper()
	s := e.parts[0].Schedule
	pieces := max(1, s.Blocks)
	if s.Partitioned() {
		pieces = max(1, s.Blocks/s.P)
	}
	price := func(m int) float64 {
		cost, err := algo.Price(s.Collective, s.Algorithm, s.P, s.Root, wordBytes*whole(s.Collective, s.P, e.m), float64(whole(s.Collective, s.P, m)))
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		return e.config.Model.Time(cost)
	}
	least, most := price(e.m/pieces*pieces), price((e.m+pieces-1)/pieces*pieces)
	if e.config.AllPort && !e.formula.allPort {
		least = 0 // the price is for one port
	}
	if strings.HasPrefix(s.Algorithm, "recursive-multiplying") {
		most *= 1.5 // a pair is late for its first exchange
	}
	r, err := e.simulate(false)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if r.Time < least*(1-1e-9) || r.Time > most*(1+1e-9) {
		t.Errorf("%s: %s takes %v, and its price is %v to %v: %s", what, s.Algorithm, r.Time, least, most, e.chosen)
	}
}
