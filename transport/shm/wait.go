package shm

import (
	"context"
	"runtime"
	"slices"
	"time"
)

const (
	// A rank that waits looks again and again if it has a core of its own, for
	// longer than a message takes. Then it lets other processes have the core in
	// between, until yieldTime. Then it sleeps. Where ranks share cores, the one
	// that it waits for may be waiting for this one's. These are looks at one lane.
	spinLooks    = 3000
	crowdedLooks = 20
	yieldTime    = 300 * time.Microsecond

	// A rank whose first yields bring what it has looked for in vain shares its
	// core with the one that it waits for, whatever else there would be: for so
	// many waits it is as patient as where ranks share cores.
	firstYields = 3
	shortWaits  = 200

	// yieldsMoving is after how many yields a rank that shares its core looks with how
	// many.
	yieldsMoving = 100
	// apartTime is how soon a rank that has moved to another core may do so again.
	apartTime = 20 * time.Millisecond

	looksApart  = 64                      // looks at the lanes between two at everything else,
	ticksApart  = looksApart * looksApart // and at the clock of a rank that never sleeps
	yieldsApart = 8                       // yields between two looks at the clock

	// patience is how long a rank waits before it says in which call it is, and
	// looks what others say; and listens to ranks of which it expects nothing.
	patience = 10 * time.Millisecond
	// checkTime is how often it looks then whether those that it waits for live.
	checkTime = 100 * time.Millisecond
)

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
		if o.over {
			return
		}
		o.waits = true
		e.nudge()
		e.unlock()
		<-o.wake
		e.lock()
		o.waits = false
	}
}

// drive moves what there is to move until o is over.
func (e *Endpoint) drive(o *op) {
	e.listens = false
	w := e.newWait()
	for round := 1; ; round++ {
		e.moved = false
		e.advance()
		e.tellAll()
		if e.moved {
			w.moved(e)
		}
		if o.over {
			return
		}
		w.looks += max(len(e.busy), 1)
		switch {
		case round%looksApart == 0:
			e.lookAround(o)
			if round%ticksApart == 0 && !o.over {
				e.inspect(&w, time.Now())
			}
		case e.moved:
		case !w.slept && w.looks < w.limit && e.spins():
		case !w.slept && w.yields(e):
			if e.spins() {
				yield()
				if e.yields++; e.crowded && e.yields%yieldsMoving == 0 {
					e.moveApart()
				}
			} else {
				e.giveWay()
			}
			if w.yielded%yieldsApart == 0 {
				e.lookAround(o)
			}
		default:
			w.slept = true
			e.doze(o, &w)
		}
		if o.over {
			return
		}
	}
}

// A wait is how a driver waits, from one thing that moves to the next.
type wait struct {
	looks   int  // at lanes
	limit   int  // of them, before it yields
	spun    bool // the limit is that of a rank with a core of its own
	yielded int
	since   time.Time // when it first looked at the clock, having yielded for a while
	slept   bool      // and nothing has moved since
	tick    time.Time // when it is to examine
}

func (e *Endpoint) newWait() wait {
	w := wait{limit: spinLooks, spun: true}
	if e.crowded || e.hasty > 0 {
		w.limit, w.spun = crowdedLooks, false
		e.hasty--
	}
	return w
}

// moved begins anew, since something has moved.
func (w *wait) moved(e *Endpoint) {
	if w.spun && w.yielded > 0 && w.yielded <= firstYields {
		e.hasty = shortWaits
		w.limit, w.spun = crowdedLooks, false
		e.moveApart()
	}
	w.looks, w.yielded, w.since, w.slept = 0, 0, time.Time{}, false
}

// moveApart takes this rank to another core if more ranks share its own than need
// to. On a busy machine the system may leave them together for long, since they
// take turns so well.
func (e *Endpoint) moveApart() {
	cpu := core()
	if cpu < 0 {
		return
	}
	here := int32(cpu) + 1
	e.seat.core.Store(here)
	now := time.Now()
	if now.Sub(e.apart) < apartTime {
		return
	}
	before := 0
	for i := range e.links[:e.cfg.Rank] {
		if e.links[i].seat.core.Load() == here {
			before++
		}
	}
	if before >= e.share {
		e.apart = now
		leaveCore(cpu)
		e.seat.core.Store(0)
	}
}

// yields reports whether to yield once more.
func (w *wait) yields(e *Endpoint) bool {
	if w.yielded++; w.yielded > 1 && !e.spins() {
		return false // those that wait for this thread have had it
	}
	if w.yielded%yieldsApart != 0 {
		return true
	}
	now := time.Now()
	if w.since.IsZero() {
		w.since = now
	}
	return now.Sub(w.since) < yieldTime
}

// doze sleeps, and examines when it is time.
func (e *Endpoint) doze(o *op, w *wait) {
	now := time.Now()
	e.inspect(w, now)
	if o.over {
		return
	}
	e.sleep(o, w.tick.Sub(now))
	if e.moved {
		w.moved(e)
	}
}

// inspect examines when it is time.
func (e *Endpoint) inspect(w *wait, now time.Time) {
	switch {
	case w.tick.IsZero():
		w.tick = now.Add(e.patience)
	case !now.Before(w.tick):
		w.tick = now.Add(max(checkTime, e.patience))
		e.listens = true
		e.examine()
	}
}

// spins reports whether a waiting rank may keep its thread for a moment: not if
// other ranks of this process need it.
func (e *Endpoint) spins() bool {
	here := int(alive.Load())
	return here <= 1 || here <= e.procs && !e.crowded
}

// giveWay lets other goroutines have the thread, and the lock.
func (e *Endpoint) giveWay() {
	e.unlock()
	runtime.Gosched()
	e.lock()
}

// advance takes what has come and sends what there is room for.
func (e *Endpoint) advance() {
	if e.listens || e.seekers > 0 {
		for i := range e.links {
			if i != e.cfg.Rank {
				e.links[i].hear()
			}
		}
	} else {
		for i := 0; i < len(e.busy); i++ {
			if l := e.busy[i]; len(l.posted) > 0 || len(l.flows) > 0 || l.waits > 0 {
				l.hear()
			}
		}
	}
	for i := 0; i < len(e.ops); i++ {
		if o := e.ops[i]; !o.over && len(o.sends)+len(o.loans) > 0 {
			o.send()
		}
	}
	if e.unposted {
		e.postRest()
	}
}

// lookAround sees to what no lane tells.
func (e *Endpoint) lookAround(o *op) {
	select {
	case <-o.ended:
		e.expire(o.ctx, o.ended)
	default:
	}
	if e.entering.Load() > 0 {
		e.giveWay()
	}
	if e.partings || e.listens || e.seekers > 0 {
		e.seePartings()
	}
	for i := 0; i < len(e.busy); i++ {
		l := e.busy[i]
		l.seeParting()
		l.fate()
	}
}

// watchOver sees to it that the driver looks at a link.
func (e *Endpoint) watchOver(l *link) {
	if !l.busy {
		l.busy = true
		e.busy = append(e.busy, l)
	}
}

// rest forgets the links that nobody waits for.
func (e *Endpoint) rest() {
	for _, l := range e.busy {
		l.busy = false
	}
	e.busy = e.busy[:0]
}

// sleep waits in the kernel, without the lock.
func (e *Endpoint) sleep(o *op, d time.Duration) {
	e.watch(o)
	if o.over {
		return
	}
	bell := e.seat.bell.Load()
	awake := e.seat.status.Load()
	word := awake | e.purpose()
	if awake != joined || !e.seat.status.CompareAndSwap(awake, word) {
		return
	}
	// Who brings something from here on sees that this rank sleeps; what was
	// there before, this sees. While it gives way, others may come to wait for more.
	e.moved = false
	e.advance()
	e.lookAround(o)
	if !e.moved && !o.over && awake|e.purpose() == word {
		e.asleep = true
		e.unlock()
		futexWait(bellOf(e.seat), bell, d)
		e.lock()
		e.asleep = false
	}
	e.seat.status.CompareAndSwap(word, joined)
}

// purpose says what the endpoint sleeps for.
func (e *Endpoint) purpose() (word uint64) {
	if e.unposted {
		word |= forAcks
	}
	if e.listens || e.seekers > 0 {
		word |= forMail
	}
	for _, o := range e.ops {
		if !o.over && len(o.sends)+len(o.loans) > 0 {
			word |= forAcks
		}
	}
	for _, l := range e.busy {
		if len(l.posted)+len(l.flows)+l.waits == 0 {
			continue
		}
		if word&forMail != 0 || word>>byRank != 0 {
			return word&(forAcks|forMail) | forMail
		}
		word |= uint64(l.peer+1) << byRank
	}
	return word
}

// nudge wakes the driver if it sleeps.
func (e *Endpoint) nudge() {
	if e.asleep {
		e.asleep = false
		e.seat.ring()
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
		defer e.unlock()
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
