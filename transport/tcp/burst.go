package tcp

import (
	"sync/atomic"
	"time"
)

// A rank that starts several short messages to a peer, and then waits, writes them by one
// system call: writing takes much longer than putting one more message beside another.
// No call says that others follow it, so a link expects as many as there were the last
// times. The last of these is written at once, together with those before it, so that the
// rank may compute afterwards. Where fewer come, they are written when the rank waits, or
// does anything else with its endpoint, or at the latest after twice burstDelay.
const (
	burstMessageMax = 4 << 10                // bytes of a message in a burst
	burstBytesMax   = 64 << 10               // bytes that wait for the end of a burst
	burstTime       = 20 * time.Microsecond  // between the first message of a burst and the last one
	burstDelay      = 500 * time.Microsecond // between two looks of the goroutine that ends bursts
)

// A burst is the short tagged messages to a peer that were started one soon after the other.
type burst struct {
	begun    time.Time // zero: there is none
	started  int       // tagged messages
	last     int       // of the burst before
	expected int       // the least of the two bursts before
	deferred bool      // some of its messages wait in the queue
}

// bursts are those of an endpoint that have not ended.
type bursts struct {
	starting bool          // a message is being started, for which nobody waits yet
	open     atomic.Bool   // there are any
	links    []*link       // that have one
	deferred int           // of these, those with deferred messages
	waits    uint64        // how often this rank has waited
	latest   time.Time     // when the latest step of a streak ended; zero if this rank has waited since
	looking  bool          // there is a goroutine that ends bursts
	time     time.Duration // burstTime, unless a test says otherwise
	delay    time.Duration // burstDelay, likewise
	gap      time.Duration // streakGap, likewise
	begun    atomic.Uint64
	oldest   atomic.Uint64 // the number of the first burst since no link had deferred messages; 0: none has
}

// defers counts a tagged message to the peer, and reports whether it waits for others.
func (l *link) defers(size int) bool {
	if !l.e.bursts.starting || size > burstMessageMax {
		return false
	}
	now := time.Now()
	if l.burstIsOver(now) {
		l.e.endBursts()
	}
	l.beginBurst(now)
	b := &l.burst
	b.started++
	if b.started >= b.expected || !l.mayDefer() {
		return false
	}
	l.setDeferred()
	return true
}

// burstIsOver reports whether a burst has lasted for as long as one may.
func (l *link) burstIsOver(now time.Time) bool {
	return !l.burst.begun.IsZero() && now.Sub(l.burst.begun) > l.e.bursts.time
}

// beginBurst begins a burst, unless there is one.
func (l *link) beginBurst(now time.Time) {
	if s := &l.e.bursts; l.burst.begun.IsZero() {
		l.burst.begun = now
		s.links = append(s.links, l)
		s.open.Store(true)
	}
}

// mayDefer reports whether there is room for one more deferred message.
func (l *link) mayDefer() bool {
	return l.out.batched() <= burstBytesMax && (l.burst.deferred || !l.out.pending())
}

// setDeferred notes that messages to the peer are deferred.
func (l *link) setDeferred() {
	if !l.burst.deferred {
		l.burst.deferred = true
		l.e.bursts.add(l.e)
	}
}

// add counts a link with deferred messages.
func (s *bursts) add(e *Endpoint) {
	if s.deferred++; s.deferred > 1 {
		return
	}
	s.oldest.Store(s.begun.Add(1))
	if !s.looking {
		s.looking = true
		e.engine.GoUnlocked(e.lookAtBursts)
	}
}

// writeBurst writes the messages of a burst that were deferred.
func (l *link) writeBurst() {
	if !l.burst.deferred {
		return
	}
	l.burst.deferred = false
	s := &l.e.bursts
	if s.deferred--; s.deferred == 0 {
		s.oldest.Store(0)
	}
	l.flush()
	l.flushLater()
}

// endBursts writes all that was deferred.
func (e *Endpoint) endBursts() {
	s := &e.bursts
	if len(s.links) == 0 {
		return
	}
	s.open.Store(false)
	for len(s.links) > 0 {
		l := s.links[len(s.links)-1]
		s.links = s.links[:len(s.links)-1]
		b := &l.burst
		if b.started > 0 {
			b.expected, b.last = min(b.last, b.started), b.started
		}
		b.begun, b.started = time.Time{}, 0
		l.writeBurst()
	}
}

// endBurstsBefore is endBursts for a call that waits only if it has to, and that has not
// locked the engine.
func (e *Endpoint) endBurstsBefore() {
	if e.bursts.open.Load() {
		e.engine.Lock()
		e.endBursts()
		e.engine.Unlock()
	}
}

// lookAtBursts ends bursts that nothing else ends. It takes the lock only for these, and
// in the end: an owner that spins would go to sleep for it.
func (e *Endpoint) lookAtBursts() {
	s := &e.bursts
	ticker := time.NewTicker(s.delay)
	defer ticker.Stop()
	for before, begun := uint64(0), uint64(0); ; {
		select {
		case <-ticker.C:
		case <-e.connecting.ctx.Done():
			return
		}
		oldest, now := s.oldest.Load(), s.begun.Load()
		switch {
		case oldest != 0 && oldest == before:
			e.engine.Lock()
			e.breakStreaks()
			e.endBursts()
			e.engine.Unlock()
		case oldest == 0 && now == begun:
			e.engine.Lock()
			if s.begun.Load() == begun {
				s.looking = false
				e.engine.Unlock()
				return
			}
			e.engine.Unlock()
		}
		before, begun = oldest, now
	}
}
