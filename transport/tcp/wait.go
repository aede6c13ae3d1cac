package tcp

import (
	"net"
	"runtime"
	"slices"
	"time"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/progress"
)

const (
	// A rank that waits spins for spinTime if it has a core of its own, which is a few
	// times what a message takes. Then it yields between polls, so that other processes
	// have the core, until yieldTime. Then it sleeps.
	spinTime  = 5 * time.Microsecond
	yieldTime = 300 * time.Microsecond

	spinLinks  = 8 // links that are worth polling one after the other
	spinRounds = 4 // rounds of polls between two looks at the clock

	// stallTimeout is how long a rank waits before it polls the ranks of which it
	// expects nothing, and before it sends stall probes to those that say nothing.
	stallTimeout = 10 * time.Millisecond
)

// A poller waits for streams. One goroutine at a time uses it, except for wake.
type poller interface {
	// attach makes a stream of a connection, which it owns from now on.
	attach(l *link, conn net.Conn) (stream, error)
	// wait returns when a link is ready for what it wants, when wake was called, or
	// after d; a negative d is for ever. It sets ready.
	wait(links []*link, d time.Duration)
	wake()
	// spins reports whether polling a stream is cheaper than being woken, and yield lets
	// another process have the core.
	spins() bool
	yield()
	close()
}

// progress makes progress on all links until o is over.
func (e *Endpoint) progress(o *progress.Op) {
	p := &e.polls
	p.all = false
	oversubscribed := e.processors.Oversubscribed
	spins, yields := p.poller.spins() && e.processors.MaySpin(), oversubscribed
	var nextCheck, quiet time.Time // quiet: since when nothing has moved
	for !o.Over() {
		e.arm()
		if e.spin(o, spins, yields) {
			quiet, yields = time.Time{}, oversubscribed
			continue
		}
		now := time.Now()
		if quiet.IsZero() {
			quiet = now
		}
		if idle := now.Sub(quiet); spins && idle < yieldTime && e.mayMoveSoon() {
			yields = oversubscribed || idle > spinTime
			continue
		}
		switch {
		case nextCheck.IsZero():
			nextCheck = now.Add(stallTimeout)
		case !now.Before(nextCheck):
			nextCheck = now.Add(stallTimeout)
			p.all = true
			for _, l := range p.busy {
				l.probe()
			}
		}
		e.sleep(o, nextCheck.Sub(now))
		for _, l := range p.watching {
			l.move(l.ready)
		}
		e.settle()
	}
	e.unwatch()
}

// advance moves what it can without waiting, and reports whether that was something.
func (e *Endpoint) advance() bool {
	before := e.polls.progressed
	e.polls.all = false
	e.arm()
	e.moveAll()
	e.unwatch()
	return e.polls.progressed != before
}

// moveAll writes and reads what there is on all links that the owner waits for.
func (e *Endpoint) moveAll() {
	for _, l := range e.polls.watching {
		l.move(l.want)
	}
	e.settle()
}

// move writes and reads what there is.
func (l *link) move(what events) {
	if what&writable != 0 {
		l.flush()
	}
	if what&readable != 0 {
		l.receive()
	}
}

// mayMoveSoon reports whether spinning makes sense. A full socket takes long to empty,
// many links take long to poll, and no goroutine should wait for the lock.
func (e *Endpoint) mayMoveSoon() bool {
	return !e.polls.full && len(e.polls.watching) <= spinLinks && e.engine.Entering.Load() == 0
}

// spin polls the links without waiting, once or, if the rank spins, a few times, and
// reports whether something has moved.
func (e *Endpoint) spin(o *progress.Op, spins, yields bool) bool {
	if !e.mayMoveSoon() {
		return false
	}
	rounds := 1
	if spins {
		rounds = spinRounds
	}
	moved := e.polls.progressed
	for range rounds {
		e.moveAll()
		if o.Over() || e.polls.progressed != moved {
			return true
		}
		if spins && yields {
			e.polls.poller.yield()
			e.home.yielded()
		}
	}
	e.engine.CheckContext(o)
	return false
}

// sleep waits in the kernel, without the lock.
func (e *Endpoint) sleep(o *progress.Op, d time.Duration) {
	p := &e.polls
	e.engine.Watch(o)
	e.arm()
	if o.Over() {
		return
	}
	p.forever = p.all && !slices.ContainsFunc(p.busy, (*link).mayProbe)
	if p.forever {
		d = -1
	}
	e.engine.EnterSleep()
	runtime.Gosched() // a goroutine that this one has woken may have its thread first
	p.poller.wait(p.watching, d)
	e.engine.ExitSleep()
}

// arm collects the links to wait for, and what each waits for.
func (e *Endpoint) arm() {
	p := &e.polls
	busy := p.busy[:0]
	for _, l := range p.busy {
		if l.busy = !l.in.queue.Idle() || l.tagged.Waiters > 0 || l.out.pending() || len(l.out.queue) > 0; l.busy {
			busy = append(busy, l)
		}
	}
	clear(p.busy[len(busy):])
	p.busy = busy

	from := p.busy
	if p.everyLink() {
		from = e.links
	}
	e.unwatch()
	p.full = false
	for _, l := range from {
		if l == nil {
			continue
		}
		if l.want = l.wants(); l.want != 0 {
			p.watching = append(p.watching, l)
			p.full = p.full || l.want&writable != 0 && l.out.full
		}
	}
}

// unwatch forgets what the owner has waited for. An operation that wants more of a
// link from here on has to wake it.
func (e *Endpoint) unwatch() {
	for _, l := range e.polls.watching {
		l.want = 0
	}
	e.polls.watching = e.polls.watching[:0]
}

// wants returns what the link waits for.
func (l *link) wants() (want events) {
	if l.reads() {
		want = readable
	}
	if l.phase == up && l.out.pending() && (l.err == nil || l.notice.queued) {
		want |= writable
	}
	return want
}

// watch has the owner wait for a link.
func (e *Endpoint) watch(l *link) {
	if !l.busy {
		l.busy = true
		e.polls.busy = append(e.polls.busy, l)
	}
	if e.engine.Asleep() && (e.polls.forever || l.wants()&^l.want != 0) {
		e.engine.Interrupt()
	}
}

// recheck has settle look at a link: a receive is new, or may go ahead.
func (e *Endpoint) recheck(l *link) {
	if !l.changed {
		l.changed = true
		e.polls.changed = append(e.polls.changed, l)
	}
	e.watch(l)
}

// settle looks once more at the links for which something has changed.
func (e *Endpoint) settle() {
	p := &e.polls
	for len(p.changed) > 0 {
		l := p.changed[len(p.changed)-1]
		p.changed = p.changed[:len(p.changed)-1]
		l.changed = false
		if !e.engine.Failed() {
			l.recheckNow()
		}
	}
}

// Stalls implements [transport.Endpoint].
func (e *Endpoint) Stalls() []transport.Stall {
	return e.engine.Stalls(func(o *progress.Op, peer int) bool {
		l := e.links[peer]
		return l != nil && slices.ContainsFunc(l.out.queue, func(m outgoing) bool { return m.op == o })
	})
}
