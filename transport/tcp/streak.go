package tcp

import (
	"time"

	"github.com/chorale-go/chorale/transport"
)

// A rank that makes many calls in which it only sends, such as broadcasts from a fixed root,
// makes a burst of them as well: the messages to a peer are written together, at the latest
// after burstTime. No number of them is expected, since nothing says which call is the last
// one. Instead, the calls must have followed each other closely for a while: a streak.
//
// A rank that waits, or does anything else with its endpoint, writes what is deferred. If it
// computes instead, the goroutine that ends bursts does so. That was too late, and the
// next streak has to be longer.
const (
	streakMin   = 8                    // messages before the first one that is deferred, at least,
	streakMax   = 256                  // and after streaks that ended too late
	streakTimed = 4                    // of these, those before the clock is read
	streakGap   = 5 * time.Microsecond // between two calls of the endpoint
)

// A streak is the short messages to a peer of steps that only sent, and between which this
// rank computed nothing.
type streak struct {
	length int
	least  int    // from which on messages are deferred, if more than streakMin
	waits  uint64 // how often this rank had waited before the latest message,
	since  int    // and the number of messages since
}

// countStep counts a message of a step that only sends. A streak ends where the peer
// answers, and where this rank waits after each message.
func (l *link) countStep() {
	s := &l.streak
	if waits := l.e.bursts.waits; s.waits != waits {
		if s.since < 2 {
			s.length = 0
		}
		s.waits, s.since = waits, 0
	}
	if l.in.fresh {
		s.length = 0
	}
	s.since++
	if s.length++; s.length >= 4*streakMax {
		s.least = 0
	}
}

// sendsShort reports whether a step only sends, and short messages.
func sendsShort(step *transport.Step) bool {
	for i := range step.Sends {
		if len(step.Sends[i].Data) > burstMessageMax {
			return false
		}
	}
	return len(step.Recvs) == 0 && len(step.Sends) > 0
}

// deferStep defers the messages of a step that sendsShort, if each of them belongs to a streak.
// If not, it defers nothing.
func (e *Endpoint) deferStep(step *transport.Step) bool {
	var now time.Time
	for i := range step.Sends {
		for _, to := range step.Sends[i].To {
			l := e.links[to]
			if l == nil || l.streak.length < streakTimed {
				return false
			}
			if now.IsZero() {
				now = time.Now()
			}
			if !l.defersStep(now) {
				return false
			}
		}
	}
	for _, l := range e.links { // a message that has come may belong to no call of this rank
		if l != nil && (l.in.headUnexpected || l.in.queue.First() != nil) {
			return false
		}
	}
	for i := range step.Sends {
		for _, to := range step.Sends[i].To {
			e.links[to].enqueueStep(step, step.Sends[i].Data, now)
		}
	}
	e.bursts.latest = now
	return true
}

// defersStep reports whether the next message of a step to the peer may be deferred. It may
// not if the peer has answered, or is to be listened to. Across hosts none is: ranks of one
// host may wait for each other over shared memory, where no burst ends.
func (l *link) defersStep(now time.Time) bool {
	s, latest := &l.streak, l.e.bursts.latest
	if !latest.IsZero() && now.Sub(latest) > l.e.bursts.gap {
		s.length = 0
		return false
	}
	if l.burstIsOver(now) {
		l.e.engine.Guard(l.e.endBursts)
	}
	return s.length >= max(streakMin, s.least) && l.phase == up && l.err == nil && !l.remote && !l.out.broken &&
		len(l.out.held) == 0 && !l.in.fresh && l.in.queue.Idle() && now.Sub(l.in.looked) < listenEvery && l.mayDefer()
}

// enqueueStep defers a message of a step.
func (l *link) enqueueStep(step *transport.Step, data []byte, now time.Time) {
	l.countStep()
	l.beginBurst(now)
	s := &step.Signature
	h := header{kind: messageFrame, text: len(s.Call), body: len(data), context: s.Context, sequence: s.Sequence, total: len(data)}
	frames := append(h.append(l.out.batch()), s.Call...)
	l.out.queue = append(l.out.queue, outgoing{frames: true, data: append(frames, data...)})
	l.setDeferred()
}

// stepSent notes the end of a step that sendsShort. The clock is read where there is a streak.
func (e *Endpoint) stepSent(step *transport.Step) {
	for i := range step.Sends {
		for _, to := range step.Sends[i].To {
			if l := e.links[to]; l.streak.length >= streakTimed {
				e.bursts.latest = time.Now()
				return
			}
		}
	}
}

// breakStreaks ends the streaks of which messages were deferred for too long.
func (e *Endpoint) breakStreaks() {
	for _, l := range e.bursts.links {
		if s := &l.streak; l.burst.deferred {
			s.length, s.least = 0, min(2*max(s.least, streakMin), streakMax)
		}
	}
}
