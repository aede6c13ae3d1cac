package chorale

import (
	"sync"
	"sync/atomic"
	"time"
)

// StartDelay is how long a nonblocking or prepared call that was started is left to the
// goroutine that waits for it. If none does, a goroutine of its own begins it then, or at
// most as long again later.
const StartDelay = 200 * time.Microsecond

// A lateCall is a call that was started, and that somebody is to run.
type lateCall interface {
	// offer lets one goroutine take the call, and take reports whether this one has.
	offer()
	take() bool
	run()
}

// A claim is who runs a call.
type claim struct{ open atomic.Bool }

func (c *claim) offer()     { c.open.Store(true) }
func (c *claim) take() bool { return c.open.CompareAndSwap(true, false) }

// startNow has a goroutine run a call unless one does already.
func startNow(c lateCall) {
	if c.take() {
		go c.run()
	}
}

// lateCalls are those of a job that nobody waits for yet. A goroutine begins them, and
// there is none while no calls are started.
type lateCalls struct {
	mu      sync.Mutex
	calls   []lateCall // since the goroutine has looked
	added   bool       // since then, also if they are taken already
	looking bool
}

// add offers a call.
func (l *lateCalls) add(c lateCall) {
	c.offer()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls, l.added = append(l.calls, c), true
	if !l.looking {
		l.looking = true
		go l.look()
	}
}

// drop forgets a call that was taken, if it is the last that was added. So calls that are
// waited for at once are garbage as soon as they are done, which costs the collector least.
func (l *lateCalls) drop(c lateCall) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last := len(l.calls) - 1; last >= 0 && l.calls[last] == c {
		l.calls[last] = nil
		l.calls = l.calls[:last]
	}
}

// look begins calls until none was added for a while.
func (l *lateCalls) look() {
	var fresh, due []lateCall // of the last look, and of the one before
	for {
		time.Sleep(StartDelay)
		l.mu.Lock()
		due, fresh, l.calls = fresh, l.calls, due[:0]
		l.looking = l.added || len(due)+len(fresh) > 0
		if !l.looking {
			l.mu.Unlock()
			return
		}
		l.added = false
		l.mu.Unlock()
		for _, c := range due {
			startNow(c)
		}
		clear(due)
	}
}
