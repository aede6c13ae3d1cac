package sim

import (
	"errors"
	"fmt"
	"math"
)

// ErrTooLarge is what a [*TooLargeError] is.
var ErrTooLarge = errors.New("the simulation is too large")

// A TooLargeError says what a simulation would have taken that was refused.
type TooLargeError struct {
	Messages float64 // about so many
	Bytes    float64 // of memory
	Seconds  float64 // on a machine that simulates 5 million messages in a second
	Limit    int64   // of memory, in bytes
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("too large: about %.2g messages would take %.2g GiB and %.0f s, and the limit is %.2g GiB: want fewer ranks, an algorithm with fewer messages, or a higher limit",
		e.Messages, e.Bytes/(1<<30), e.Seconds, float64(e.Limit)/(1<<30))
}

func (e *TooLargeError) Unwrap() error { return ErrTooLarge }

const (
	defaultMemory = 4 << 30
	perMessage    = 60 // bytes, with the steps at both ends
	perRecorded   = 120
	perLink       = 16 // bytes per directed link
	perRank       = 200
	perSecond     = 5e6 // messages
)

// An estimate is what a few programs say of all.
type estimate struct{ steps, messages int }

// survey looks at the programs of a few ranks, roots among them.
func survey(parts []Part) estimate {
	const looks = 8
	var steps, messages float64
	for _, p := range parts {
		n := p.Schedule.P
		count := func(rank int) (steps, sends float64) {
			for _, s := range p.Schedule.Program(rank) {
				if len(s.Sends)+len(s.Recvs) > 0 {
					steps++
				}
				for _, send := range s.Sends {
					sends += float64(len(send.To))
				}
			}
			return
		}
		stride := max(1, n/looks)
		seen := 0
		var sumSteps, sumSends float64
		rootSteps, rootSends := count(p.Schedule.Root) // it may have much more to do than others
		for rank := stride / 2; rank < n; rank += stride {
			if rank == p.Schedule.Root {
				continue
			}
			s, m := count(rank)
			sumSteps, sumSends, seen = sumSteps+s, sumSends+m, seen+1
		}
		others := float64(n-1) / math.Max(1, float64(seen))
		steps += rootSteps + sumSteps*others
		messages += rootSends + sumSends*others
	}
	bound := func(x float64) int { return int(math.Min(x*1.01+1024, math.MaxInt32)) }
	return estimate{bound(steps), bound(messages)}
}

// affordable refuses what would take more memory than the limit.
func (c Config) affordable(ranks int, e estimate) error {
	limit := c.MemoryLimit
	if limit == 0 {
		limit = defaultMemory
	}
	messages, per := float64(e.messages), float64(perMessage)
	if c.Record {
		per += perRecorded
	}
	bytes := messages*per + float64(ranks)*perRank + float64(c.Topology.LinkCount())*2*perLink
	if bytes > float64(limit) || e.messages == math.MaxInt32 {
		return &TooLargeError{Messages: messages, Bytes: bytes, Seconds: messages / perSecond, Limit: limit}
	}
	return nil
}
