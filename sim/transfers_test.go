package sim_test

import (
	"math"
	"testing"

	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/sim"
)

// Times such as 0.1 are not exact. A message may then have a rest of its words
// to come that takes less time than the clock can tell from none, and still it
// must end.
func TestFlowsEndAlthoughTimesAreRounded(t *testing.T) {
	for _, p := range []int{16, 32, 64} {
		for _, memory := range []float64{0.1, 0.3, 0.7, 1.1, 3} {
			r := simulate(t, sched.Bcast, "rotated", p, "hypercube", 12, func(c *sim.Config) {
				c.Model, c.AllPort, c.MemoryBandwidth = model.Model{Ts: 0.1, Tw: 1}, true, memory
			})
			lg := math.Log2(float64(p))
			if want := 0.1*lg + 12*lg*max(1, lg/memory); math.Abs(r.Time-want) > 1e-9*want {
				t.Errorf("p %d, memory %v: %v, want %v", p, memory, r.Time, want)
			}
		}
	}
}
