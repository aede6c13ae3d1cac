package shm

import (
	"math/bits"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
)

// An inline message to several ranks is written once, into a multicast cell of its
// sender that all of them read. The multicast cells of a rank are a ring that is
// shared by its readers.
//
// A receiver knows in which order multicast frames and the frames of its ring were
// sent: every frame that begins a message holds the number of multicast frames before
// it.
const (
	multicastDepth = 16 // cells of a rank
	multicastRanks = 64 // ranks of a job in which there are multicast cells: their readers are one word
	multicastMin   = 3  // receivers of a multicast frame; fewer are served one by one as well
)

// sendMulticast sends a message to several ranks at once, if that is possible now.
func (e *Endpoint) sendMulticast(call *match.Call, s *transport.Send) bool {
	w := &e.out.multicast
	if len(s.Data) > multicastMax || w.cells == nil || !e.hasMulticastRoom() {
		return false
	}
	var readers uint64
	for _, to := range s.To {
		if e.links[to].err != nil {
			return false
		}
		readers |= 1 << to
	}
	if bits.OnesCount64(readers) != len(s.To) {
		return false // a rank that is named twice gets two messages
	}
	c := w.begin()
	c.setStep(len(s.Data), call, 0)
	c.setMulticast(s.Data)
	w.publish(c, readers)
	for _, to := range s.To {
		e.links[to].noteWakeup(wrote)
	}
	return true
}

// hasMulticastRoom reports whether all readers of the oldest multicast frame have
// taken it.
func (e *Endpoint) hasMulticastRoom() bool {
	w := &e.out.multicast
	if w.written < multicastDepth {
		return true
	}
	oldest := w.written - multicastDepth + 1
	for readers := w.readers[w.written%multicastDepth]; readers != 0; readers &= readers - 1 {
		l := &e.links[bits.TrailingZeros64(readers)]
		if l.err != nil {
			continue
		}
		if l.out.multicasts < oldest {
			if l.out.ring.admits.Load() != 0 {
				return false
			}
			if l.out.multicasts = l.out.ring.multicasts.Load(); l.out.multicasts < oldest {
				return false
			}
		}
	}
	return true
}

// nextMulticast returns the cell of the peer's next multicast frame to this rank, or
// nil. Frames for other ranks are passed over. A cell that has been reused held such a
// frame.
func (l *link) nextMulticast() *cell {
	for range 1 << 16 {
		c := multicastCell(l.in.multicastCells, l.in.multicasts)
		number, readers := readMulticast(c)
		switch {
		case number <= l.in.multicasts:
			return nil
		case (number-l.in.multicasts-1)%multicastDepth != 0: // the frame of another cell
			l.protocolError()
			return nil
		case number > l.in.multicasts+1:
			l.in.multicasts = number - multicastDepth
		case readers>>l.e.cfg.Rank&1 != 0:
			return c
		default:
			l.in.multicasts++
		}
	}
	l.protocolError() // it writes faster than it may
	return nil
}

// precedes reports whether the frame at the head of the ring was sent before the next
// multicast frame.
func (r *recvRing) precedes(c *cell, k frameKind) bool {
	return !k.beginsMessage() || int32(c.step().multicasts-uint32(r.multicasts)) <= 0
}

// takeMulticast notes that a multicast frame was taken.
func (l *link) takeMulticast() {
	l.in.multicasts++
	l.in.releaseMulticast(l.in.multicasts)
	l.noteWakeup(took)
	l.e.polls.progressed = true
}
