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

// lateCalls are those of a job that nobody waits for yet. A timer looks at them until none
// was added for a while. It keeps its memory, so that a call that takes longer than that
// can be started again without an allocation.
type lateCalls struct {
	mu      sync.Mutex
	calls   []lateCall // since the last look
	fresh   []lateCall // at the last look
	due     []lateCall // at the look before
	added   bool       // since the last look, also if they are taken already
	looking bool
	timer   *time.Timer // made by the first call
}

// add offers a call.
func (l *lateCalls) add(c lateCall) {
	c.offer()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls, l.added = append(l.calls, c), true
	switch {
	case l.looking:
		return
	case l.timer == nil:
		l.timer = time.AfterFunc(StartDelay, l.look)
	default:
		l.timer.Reset(StartDelay)
	}
	l.looking = true
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

// look begins the calls that were there at the look before already.
func (l *lateCalls) look() {
	l.mu.Lock()
	l.due, l.fresh, l.calls = l.fresh, l.calls, l.due[:0]
	due, again := l.due, l.added || len(l.due)+len(l.fresh) > 0
	l.added, l.looking = false, again
	l.mu.Unlock()
	for _, c := range due {
		startNow(c)
	}
	clear(due)
	if again { // not before the calls are cleared: the next look but one adds calls there
		l.timer.Reset(StartDelay)
	}
}
