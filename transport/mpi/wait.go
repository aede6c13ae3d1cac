//go:build mpi

package mpi

import (
	"runtime"
	"time"

	"github.com/chorale-go/chorale/transport/internal/progress"
)

const (
	// A rank that waits spins for spinTime if it has a core of its own, which is a few
	// times what a message takes. Then it yields between polls, so that other processes
	// have the core, until yieldTime. Then it sleeps between polls.
	spinTime  = 20 * time.Microsecond
	yieldTime = 300 * time.Microsecond

	spinRounds = 8 // polls between two looks at the clock

	// A sleep between two polls takes a napShare of the time that the rank has waited, so
	// that a rank that waits for long takes little of its core. napMin and napMax bound it.
	napShare = 64
	napMin   = 20 * time.Microsecond
	napMax   = time.Millisecond
	// backoff is the first sleep of a loop that only waits for MPI to complete something.
	backoff = time.Microsecond

	// stallTimeout is how long a rank waits before it sends stall probes to the ranks that
	// say nothing.
	stallTimeout = 10 * time.Millisecond
)

// progress makes progress on all links until o is over.
func (e *Endpoint) progress(o *progress.Op) {
	var quiet, nextCheck time.Time // quiet: since when nothing has moved
	for !o.Over() {
		rounds := 1
		spins := e.processors.MaySpin() && e.engine.Entering.Load() == 0
		if spins {
			rounds = spinRounds
		}
		if e.poll(rounds) != nil {
			return
		}
		if e.progressed {
			quiet, e.yields = time.Time{}, e.processors.Oversubscribed
			continue
		}
		now := time.Now()
		if quiet.IsZero() {
			quiet = now
		}
		e.engine.CheckContext(o)
		idle := now.Sub(quiet)
		if spins && idle < yieldTime {
			e.yields = e.processors.Oversubscribed || idle > spinTime
			continue
		}
		switch {
		case nextCheck.IsZero():
			nextCheck = now.Add(stallTimeout)
		case !now.Before(nextCheck):
			nextCheck = now.Add(stallTimeout)
			e.probe()
		}
		e.sleep(o, min(max(idle/napShare, napMin), napMax))
	}
}

// probe sends stall probes.
func (e *Endpoint) probe() {
	for _, l := range e.links {
		if l != nil && !l.in.queue.Idle() {
			l.probe()
		}
	}
}

// sleep waits in the kernel, without the lock.
func (e *Endpoint) sleep(o *progress.Op, d time.Duration) {
	e.engine.Watch(o)
	if o.Over() {
		return
	}
	e.engine.EnterSleep()
	runtime.Gosched() // a goroutine that this one has woken may have its thread first
	pause(d)
	e.engine.ExitSleep()
}
