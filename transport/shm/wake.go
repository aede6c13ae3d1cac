package shm

import "sync/atomic"

// A rank wakes its peers when it has written or taken frames: ordering.go, 3, says why
// no wake-up is lost. wait.go has the other side, the rank that sleeps.

// pendingWakeups are the peers that may sleep for what this rank has done.
type pendingWakeups struct {
	links []*link
	fence atomic.Uint32 // a read-modify-write on it is a full fence
}

// wakeups is what a peer may sleep for, and this rank has done.
type wakeups uint8

const (
	wrote wakeups = 1 << iota // a frame to the peer
	took                      // a frame of the peer
)

// noteWakeup notes what this rank has done. wakePeers wakes the peer if it sleeps for
// that.
func (l *link) noteWakeup(w wakeups) {
	if l.wakeups == 0 {
		l.e.wakes.links = append(l.e.wakes.links, l)
	}
	l.wakeups |= w
}

// wakePeers wakes the peers that sleep for what this rank has written or taken.
func (e *Endpoint) wakePeers() {
	if len(e.wakes.links) > 0 {
		e.wakeSleepers()
	}
}

func (e *Endpoint) wakeSleepers() {
	e.wakes.fence.Add(1) // orders the stores before the loads: ordering.go, 3
	for _, l := range e.wakes.links {
		done := l.wakeups
		l.wakeups = 0
		switch w := l.state.status.Load(); {
		case w == joined:
		case w&lifecycleMask >= left:
			e.polls.terminated = true
		case sleepsFor(w, e.cfg.Rank, done&wrote != 0, done&took != 0):
			l.state.wakeFrom(w)
		}
	}
	e.wakes.links = e.wakes.links[:0]
}
