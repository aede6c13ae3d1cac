package shm

import (
	"runtime"
	"time"

	"github.com/chorale-go/chorale/transport/internal/progress"
)

const (
	roundsPerCheck = 64                              // rounds of polls between two checks of everything that no ring tells
	roundsPerClock = roundsPerCheck * roundsPerCheck // rounds between two looks at the clock of a rank that never sleeps
	yieldsPerCheck = 8                               // yields between two looks at the clock

	// stallTimeout is how long a rank waits before it checks for stalls, and polls the
	// ranks of which it expects nothing.
	stallTimeout = 10 * time.Millisecond
	// livenessInterval is how often it then checks whether its peers are alive.
	livenessInterval = 100 * time.Millisecond
)

// progress makes progress for all operations until o is over.
func (e *Endpoint) progress(o *progress.Op) {
	e.polls.all = false
	b := e.wait.begin()
	for round := 1; ; round++ {
		e.polls.progressed = false
		e.advance()
		e.wakePeers()
		if e.polls.progressed && b.progressed() {
			e.wait.noteSharedCore(e)
		}
		if o.Over() {
			return
		}
		b.polls += max(len(e.polls.busy), 1)
		switch {
		case round%roundsPerCheck == 0:
			e.checkEvents(o)
			if round%roundsPerClock == 0 && !o.Over() {
				e.checkTime(&b, time.Now())
			}
		case e.polls.progressed: // poll again at once
		case !b.slept && b.polls < b.limit && e.wait.MaySpin(): // spin
		case !b.slept && b.mayYield(e.wait.MaySpin()):
			if e.wait.MaySpin() {
				yield()
				e.wait.yielded(e)
			} else {
				e.yieldLock()
			}
			if b.yields%yieldsPerCheck == 0 {
				e.checkEvents(o)
			}
		default:
			b.slept = true
			e.sleepUntilCheck(o, &b)
		}
		if o.Over() {
			return
		}
	}
}

// advance takes what has arrived, and writes what there is room for.
func (e *Endpoint) advance() {
	if e.polls.everyLink() {
		for i := range e.links {
			if i != e.cfg.Rank {
				e.links[i].poll()
			}
		}
	} else {
		for i := 0; i < len(e.polls.busy); i++ {
			if l := e.polls.busy[i]; l.expectsFrame() {
				l.poll()
			}
		}
	}
	if len(e.out.queue)+len(e.out.rendezvous) > 0 {
		e.flush()
	}
	if e.polls.unflushed {
		e.flushTaggedFrames()
	}
}

// expectsFrame reports whether an operation waits for a frame of the peer.
func (l *link) expectsFrame() bool {
	return !l.in.queue.Idle() || l.in.arriving() || l.tagged.Waiters > 0
}

// checkEvents checks for everything that no ring tells: the end of the context, a
// goroutine that wants the lock, a peer that has terminated.
func (e *Endpoint) checkEvents(o *progress.Op) {
	e.engine.CheckContext(o)
	if e.engine.Entering.Load() > 0 {
		e.yieldLock()
	}
	if e.polls.terminated || e.polls.everyLink() || e.state.told.Load() != e.polls.told {
		e.checkPeers()
	}
	for i := 0; i < len(e.polls.busy); i++ {
		l := e.polls.busy[i]
		l.checkTermination()
		l.failWaiters()
	}
}

// yieldLock lets other goroutines have the thread, and the lock.
func (e *Endpoint) yieldLock() {
	e.unlock()
	runtime.Gosched()
	e.engine.Lock()
}

// add adds a link to those that the owner polls.
func (p *pollSet) add(l *link) {
	if !l.busy {
		l.busy = true
		p.busy = append(p.busy, l)
	}
}

// clear removes all links.
func (p *pollSet) clear() {
	for _, l := range p.busy {
		l.busy = false
	}
	p.busy = p.busy[:0]
}

// sleepUntilCheck sleeps, and checks for stalls when it is time.
func (e *Endpoint) sleepUntilCheck(o *progress.Op, b *backoff) {
	if e.polls.unflushed {
		if e.copyUnwritten(); o.Over() {
			return
		}
	}
	now := time.Now()
	e.checkTime(b, now)
	if o.Over() {
		return
	}
	next := b.nextCheck
	if again := e.polls.lookAgain; !again.IsZero() && again.Before(next) {
		next = again
	}
	e.polls.lookAgain = time.Time{}
	e.sleep(o, next.Sub(now))
	if e.polls.progressed && b.progressed() {
		e.wait.noteSharedCore(e)
	}
}

// checkTime checks for stalls when it is time.
func (e *Endpoint) checkTime(b *backoff, now time.Time) {
	switch {
	case b.nextCheck.IsZero():
		b.nextCheck = now.Add(e.wait.stallTimeout)
	case !now.Before(b.nextCheck):
		b.nextCheck = now.Add(max(livenessInterval, e.wait.stallTimeout))
		e.polls.all = true
		e.checkStalls()
	}
}

// sleep sleeps in the kernel, without the lock, for d at most.
func (e *Endpoint) sleep(o *progress.Op, d time.Duration) {
	e.engine.Watch(o)
	if o.Over() {
		return
	}
	word := joined | e.sleepReason()
	futex, ok := e.state.announceSleep(word)
	if !ok {
		return
	}
	// A peer that does something from here on sees that this rank sleeps; this rank
	// sees what was done before. During checkEvents, operations may begin to wait for
	// more.
	e.polls.progressed = false
	e.advance()
	e.checkEvents(o)
	if !e.polls.progressed && !o.Over() && joined|e.sleepReason() == word {
		e.engine.EnterSleep()
		futexWait(e.state.futexWord(), futex, d)
		e.engine.ExitSleep()
	}
	e.state.awake(word)
}

// sleepReason returns the part of the status word that says what the rank sleeps for.
func (e *Endpoint) sleepReason() (word uint64) {
	if e.polls.unflushed || e.out.waitsForPeer() {
		word |= forTaken
	}
	if e.polls.everyLink() {
		word |= forAny
	}
	for _, l := range e.polls.busy {
		if !l.expectsFrame() {
			continue
		}
		if word&forAny != 0 || word>>fromShift != 0 {
			return word&(forTaken|forAny) | forAny
		}
		word |= uint64(l.peer+1) << fromShift
	}
	return word
}
