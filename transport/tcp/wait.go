package tcp

import (
	"context"
	"net"
	"runtime"
	"slices"
	"time"
)

const (
	// A rank that waits asks again and again for spinTime if it has a core of
	// its own, which is a few times what a message takes. Then it lets other
	// processes have the core in between, until yieldTime. Then it sleeps.
	spinTime  = 5 * time.Microsecond
	yieldTime = 300 * time.Microsecond

	spinLinks  = 8 // links that are worth asking one after the other
	spinRounds = 4 // between two looks at the clock

	// patience is how long a rank waits before it listens to ranks of which it
	// expects nothing. Twice as long, and it tells those that say nothing what
	// it waits for.
	patience = 10 * time.Millisecond
)

// A poller waits for streams. It is used by one goroutine at a time, except
// for wake.
type poller interface {
	// attach makes a stream of a connection, which is its own from now on.
	attach(l *link, conn net.Conn) (stream, error)
	// wait returns when a link is ready for what it wants, when wake was
	// called, or after d; a negative d is for ever. It sets ready.
	wait(links []*link, d time.Duration)
	wake()
	// spins reports whether to ask a stream is cheaper than to be woken, and
	// yield lets another process have the core.
	spins() bool
	yield()
	close()
}

// await returns when o is over.
func (e *Endpoint) await(o *op) {
	for !o.over {
		if !e.driven {
			e.driven, o.drive = true, true
			e.drive(o)
			e.driven, o.drive = false, false
			return
		}
		e.watch(o)
		e.mu.Unlock()
		<-o.wake
		e.lock()
	}
}

// drive moves what there is to move on all links until o is over.
func (e *Endpoint) drive(o *op) {
	e.listens = false
	spins, yields := e.spins(), e.crowded
	var tick, quiet time.Time // quiet: since when nothing has moved
	for !o.over {
		e.arm()
		if e.spin(o, spins, yields) {
			quiet, yields = time.Time{}, e.crowded
			continue
		}
		now := time.Now()
		if quiet.IsZero() {
			quiet = now
		}
		if idle := now.Sub(quiet); spins && idle < yieldTime && e.mayMoveSoon() {
			yields = e.crowded || idle > spinTime
			continue
		}
		switch {
		case tick.IsZero():
			tick = now.Add(patience)
		case !now.Before(tick):
			tick = now.Add(patience)
			e.listens = true
			for _, l := range e.busy {
				l.ask()
			}
		}
		e.sleep(o, tick.Sub(now))
		for _, l := range e.watching {
			l.move(l.ready)
		}
		e.settle()
	}
	e.unwatch()
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

// spins reports whether a waiting rank may keep its thread for a moment: not if
// other ranks of this process need it.
func (e *Endpoint) spins() bool {
	here := int(alive.Load())
	return e.poll.spins() && (here <= 1 || here <= e.procs && !e.crowded)
}

// mayMoveSoon reports whether spinning makes sense. A full socket takes long
// to empty, many links take long to ask, and nobody should wait for the lock.
func (e *Endpoint) mayMoveSoon() bool {
	return !e.full && len(e.watching) <= spinLinks && e.entering.Load() == 0
}

// spin asks the links without waiting, once or, if it spins, a few times, and
// reports whether something has moved.
func (e *Endpoint) spin(o *op, spins, yields bool) bool {
	if !e.mayMoveSoon() {
		return false
	}
	rounds := 1
	if spins {
		rounds = spinRounds
	}
	moved := e.moved
	for range rounds {
		for _, l := range e.watching {
			l.move(l.want)
		}
		e.settle()
		if o.over || e.moved != moved {
			return true
		}
		if spins && yields {
			e.poll.yield()
		}
	}
	select {
	case <-o.ended:
		e.expire(o.ctx, o.ended)
	default:
	}
	return false
}

// sleep waits in the kernel, without the lock.
func (e *Endpoint) sleep(o *op, d time.Duration) {
	e.watch(o)
	e.arm()
	if o.over {
		return
	}
	e.forever = e.listens && !slices.ContainsFunc(e.busy, (*link).curious)
	if e.forever {
		d = -1
	}
	e.asleep = true
	e.mu.Unlock()
	runtime.Gosched() // whom this goroutine has woken may have its thread first
	e.poll.wait(e.watching, d)
	e.lock()
	e.asleep = false
}

// arm collects the links to wait for, and what each waits for.
func (e *Endpoint) arm() {
	busy := e.busy[:0]
	for _, l := range e.busy {
		if l.busy = len(l.posted) > 0 || l.waits > 0 || l.pending(); l.busy {
			busy = append(busy, l)
		}
	}
	clear(e.busy[len(busy):])
	e.busy = busy

	from := e.busy
	if e.listens || e.seekers > 0 {
		from = e.links
	}
	e.unwatch()
	e.full = false
	for _, l := range from {
		if l == nil {
			continue
		}
		if l.want = l.wants(); l.want != 0 {
			e.watching = append(e.watching, l)
			e.full = e.full || l.want&writable != 0
		}
	}
}

// unwatch forgets what the driver has waited for: who wants that of a link from here
// on has to wake it.
func (e *Endpoint) unwatch() {
	for _, l := range e.watching {
		l.want = 0
	}
	e.watching = e.watching[:0]
}

// wants returns what the link waits for.
func (l *link) wants() (want events) {
	if l.reads() {
		want = readable
	}
	if l.phase == up && l.pending() && (l.err == nil || l.unsaid) {
		want |= writable
	}
	return want
}

// watchOver sees to it that the driver waits for a link.
func (e *Endpoint) watchOver(l *link) {
	if !l.busy {
		l.busy = true
		e.busy = append(e.busy, l)
	}
	if e.asleep && (e.forever || l.wants()&^l.want != 0) {
		e.nudge()
	}
}

// nudge wakes the driver if it sleeps.
func (e *Endpoint) nudge() {
	if e.asleep {
		e.asleep = false
		e.poll.wake()
	}
}

// A watch is a context whose end is noticed while an operation uses it. It stays
// for the next one, which most often has the same.
type watch struct {
	ended <-chan struct{}
	stop  func() bool
}

const watchesMax = 8

// watch sees to it that the end of o's context is noticed while o's goroutine
// sleeps.
func (e *Endpoint) watch(o *op) {
	if o.ended == nil {
		return
	}
	for i := range e.watches {
		if e.watches[i].ended == o.ended {
			return
		}
	}
	if len(e.watches) >= watchesMax {
		e.watches = slices.DeleteFunc(e.watches, func(w watch) bool {
			unused := !e.uses(w.ended)
			if unused {
				w.stop()
			}
			return unused
		})
	}
	ctx, ended := o.ctx, o.ended
	stop := context.AfterFunc(ctx, func() {
		e.lock()
		defer e.mu.Unlock()
		e.watches = slices.DeleteFunc(e.watches, func(w watch) bool { return w.ended == ended })
		e.expire(ctx, ended)
	})
	e.watches = append(e.watches, watch{ended, stop})
}

// uses reports whether an operation in progress has the context with this Done
// channel.
func (e *Endpoint) uses(ended <-chan struct{}) bool {
	return slices.ContainsFunc(e.ops, func(o *op) bool { return !o.over && o.ended == ended })
}
