package tune

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/chorale-go/chorale/model"
)

// A machine is quiet if, while it is measured, no more than these disturb it.
const (
	quietLoad   = 0.25 // processes that want to run before, per processor
	quietSteal  = 0.01
	quietSpread = 0.1
)

// An Observation is what the system says of a machine at one time.
type Observation struct {
	made  time.Time
	load  *float64
	ticks *ticks
}

// ticks are times of all processors together, in the system's unit.
type ticks struct{ all, stolen float64 }

// Observe observes the machine before a measurement.
func Observe() Observation {
	o := Observation{made: time.Now(), ticks: readTicks()}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		var load float64
		if n, _ := fmt.Sscan(string(text), &load); n == 1 {
			o.load = &load
		}
	}
	return o
}

// readTicks returns nil where the system does not tell.
func readTicks() *ticks {
	text, _ := os.ReadFile("/proc/stat")
	line, _, _ := bytes.Cut(text, []byte("\n"))
	var x [8]float64 // user, nice, system, idle, iowait, irq, softirq, steal
	if n, _ := fmt.Sscanf(string(line), "cpu %g %g %g %g %g %g %g %g", &x[0], &x[1], &x[2], &x[3], &x[4], &x[5], &x[6], &x[7]); n < len(x) {
		return nil
	}
	t := &ticks{stolen: x[7]}
	for _, time := range x {
		t.all += time
	}
	return t
}

// Origin returns the origin of what has been measured since the observation, whose repeated
// medians are as far apart as the spreads say.
func (o Observation) Origin(spreads []float64, processors int) model.Origin {
	host, _ := os.Hostname()
	origin := model.Origin{
		Made: o.made.UTC().Truncate(time.Second), Host: host, System: runtime.GOOS + "/" + runtime.GOARCH,
		Load: o.load, Spread: median(spreads),
	}
	origin.Quiet = origin.Spread <= quietSpread
	if o.load != nil {
		origin.Quiet = origin.Quiet && *o.load <= quietLoad*float64(processors)
	}
	if now := readTicks(); now != nil && o.ticks != nil && now.all > o.ticks.all {
		steal := (now.stolen - o.ticks.stolen) / (now.all - o.ticks.all)
		origin.Steal = &steal
		origin.Quiet = origin.Quiet && steal <= quietSteal
	}
	return origin
}
