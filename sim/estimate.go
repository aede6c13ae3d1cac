package sim

import (
	"errors"
	"fmt"
	"math"
)

// ErrTooLarge is the error that every [*TooLargeError] wraps.
var ErrTooLarge = errors.New("the simulation is too large")

// A TooLargeError says why a simulation was refused: its estimated size.
type TooLargeError struct {
	Messages float64
	Bytes    float64 // of memory
	Seconds  float64 // on a machine that simulates 5 million messages in a second
	Limit    int64   // of memory, in bytes
}

func (e *TooLargeError) Error() string {
	size := fmt.Sprintf("too large: about %.2g messages would take %.2g GiB and %.0f s", e.Messages, e.Bytes/(1<<30), e.Seconds)
	if e.Bytes <= float64(e.Limit) {
		return fmt.Sprintf("%s, and %d cannot be told apart: want fewer ranks, or an algorithm with fewer messages", size, math.MaxInt32)
	}
	return fmt.Sprintf("%s, and the limit is %.2g GiB: want fewer ranks, an algorithm with fewer messages, or a higher limit", size, float64(e.Limit)/(1<<30))
}

func (e *TooLargeError) Unwrap() error { return ErrTooLarge }

// The memory of a simulation, in bytes.
const (
	perMessage      = 20 // with its ends, which are found again for an error or where messages wait
	perStep         = 20 // with the words that copies combine before it
	perResource     = 12 // per directed link of a network,
	perListed       = 40 // or per link that a message crosses
	perRank         = 220
	perQueued       = 120 // per message, where messages wait for each other
	perWork         = 40  // per piece of work of a processor, where messages are such
	perRecorded     = 136 // per message of a log,
	perRecordedLink = 150 // and per link that it names

	defaultMemory = 4 << 30
	perSecond     = 5e6 // messages
)

// An estimate is the size of a simulation, extrapolated from a few programs.
type estimate struct{ steps, messages float64 }

// capacities returns capacities of lists that most likely hold all steps and
// messages.
func (e estimate) capacities() (steps, messages int) {
	return int(e.steps*1.01) + 1024, int(e.messages*1.01) + 1024
}

// estimateSize adds the sizes of the schedules.
func estimateSize(parts []Part) (e estimate) {
	for _, p := range parts {
		size := p.Schedule.Size()
		e.steps, e.messages = e.steps+size.Steps, e.messages+size.Messages
	}
	return e
}

// checkMemory refuses a simulation that would take more memory than the limit.
// Queued tells whether messages wait for each other.
func (c Config) checkMemory(ranks int, e estimate, queued bool) error {
	links := 2 * float64(c.Topology.LinkCount())
	crossings := e.messages * float64(c.Topology.Diameter())
	bytes := e.messages*perMessage + e.steps*perStep + min(links*perResource, crossings*perListed) + float64(ranks)*perRank
	if queued {
		bytes += e.messages * perQueued
	}
	if c.Machine.works() {
		bytes += (2*e.messages + e.steps + float64(ranks)) * perWork
	}
	if c.Record {
		bytes += e.messages*perRecorded + min(links, crossings)*perRecordedLink
	}
	limit := c.MemoryLimit
	if limit == 0 {
		limit = defaultMemory
	}
	if bytes > float64(limit) || math.Max(e.messages, e.steps) > math.MaxInt32/1.1 {
		return &TooLargeError{Messages: e.messages, Bytes: bytes, Seconds: e.messages / perSecond, Limit: limit}
	}
	return nil
}
