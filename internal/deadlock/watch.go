package deadlock

import (
	"sync"
	"time"

	"github.com/chorale-go/chorale/transport"
)

// A Group is the ranks of one process that are watched: see [WatchRanks].
type Group struct {
	ranks    []transport.Endpoint
	patience time.Duration
	report   func(Cycle)

	// Made by the first look: most jobs are over before.
	finder  *Finder
	watches []Watch
	before  [][]transport.Stall

	mu      sync.Mutex
	timer   *time.Timer // the next look
	stopped bool
	quiet   int // looks since anything has changed
}

// WatchRanks calls report when ranks of this process have waited for each other for two
// thirds of the patience or more, until the group is stopped. The same deadlock is reported
// once. There is no goroutine between the looks.
func WatchRanks(patience time.Duration, ranks []transport.Endpoint, report func(Cycle)) *Group {
	g := &Group{ranks: ranks, patience: patience, report: report}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.timer = time.AfterFunc(g.interval(), g.look)
	return g
}

// Stop ends the watch. A report may be in progress, and none begins afterwards.
func (g *Group) Stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stopped = true
	g.timer.Stop()
	// Go forgets a stopped timer late: until then it would hold the job's memory.
	g.ranks, g.report, g.finder, g.watches, g.before = nil, nil, nil, nil, nil
}

// The looks at ranks of which none has begun or ended to wait get rarer after
// quietLooks, and end after lastLook. So a program whose clock goes on only while all wait
// (testing/synctest) comes to its end.
const (
	quietLooks = 8
	lastLook   = quietLooks + 12
)

func (g *Group) interval() time.Duration {
	return max(g.patience/3, 1) << max(0, g.quiet-quietLooks)
}

// look looks at all ranks once.
func (g *Group) look() {
	g.mu.Lock()
	if g.stopped {
		g.mu.Unlock()
		return
	}
	if g.finder == nil {
		g.finder = NewFinder(len(g.ranks), g.patience)
		g.watches, g.before = make([]Watch, len(g.ranks)), make([][]transport.Stall, len(g.ranks))
	}
	g.quiet++
	var found []Cycle
	for rank, e := range g.ranks {
		now := e.Stalls()
		if !same(now, g.before[rank]) {
			g.before[rank], g.quiet = now, 0
		}
		if stalls, ok := g.watches[rank].Look(now); ok {
			if d := g.finder.Record(rank, stalls); d != nil {
				found = append(found, d)
			}
		}
	}
	if g.quiet < lastLook {
		g.timer.Reset(g.interval())
	}
	report := g.report
	g.mu.Unlock()
	for _, d := range found {
		report(d)
	}
}
