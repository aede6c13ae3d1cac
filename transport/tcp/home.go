package tcp

import (
	"time"

	"github.com/chorale-go/chorale/internal/processors"
)

// Oversubscribed ranks that yield are always ready to run, and a processor with one of them is
// as busy for the scheduler as one with three: it may leave them so for a tenth of a second.
// So each rank has a home among the processors, by turns, and moves there when it finds
// itself elsewhere. It may be moved away again: others may need the processor as well.
const (
	yieldsPerLook = 100                   // between two looks where this rank is
	moveInterval  = 20 * time.Millisecond // between two moves, at least,
	moveMost      = 5 * time.Second       // and if it is moved away each time
)

// A home is the processor that a rank returns to.
type home struct {
	cpu      int // -1: none
	yields   int // so far
	moved    time.Time
	interval time.Duration // until the next move
}

// findHome finds the home of this rank. It has none if it need not share a processor, or if
// ranks of the job are on other hosts: those here may exchange messages over shared memory,
// where they share the processors otherwise.
func (e *Endpoint) findHome() {
	e.home.cpu = -1
	if e.processors.Oversubscribed && (e.cfg.Local == 0 || e.cfg.Local == e.cfg.Size) {
		e.home.cpu = processors.Nth(e.cfg.Rank)
	}
}

// yielded notes that this rank has yielded, and moves it home now and then.
func (h *home) yielded() {
	if h.yields++; h.yields%yieldsPerLook != 0 || h.cpu < 0 || processors.Current() == h.cpu {
		return
	}
	if h.mayMove(time.Now()) {
		processors.MoveTo(h.cpu)
	}
}

// mayMove reports whether the last move was long enough ago, and notes this one. A rank that
// is moved away again soon waits for twice as long as before.
func (h *home) mayMove(now time.Time) bool {
	since := now.Sub(h.moved)
	switch {
	case since < h.interval:
		return false
	case since < 8*h.interval:
		h.interval = min(2*h.interval, moveMost)
	default:
		h.interval = moveInterval
	}
	h.moved = now
	return true
}
