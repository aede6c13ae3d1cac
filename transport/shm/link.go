package shm

import (
	"sync/atomic"
	"unsafe"

	"github.com/chorale-go/chorale/transport"
)

// A link is what an endpoint has to do with one peer.
type link struct {
	e    *Endpoint
	peer int
	seat *seat // the peer's
	err  error // why nothing comes from the peer any more
	busy bool  // among those that the driver looks at
	news news  // what the peer has not been told

	sender
	receiver
	postman

	missing bool // its seat was empty when it was last looked at
	reach   reach
}

// A sender is the half of a link that writes to the peer.
type sender struct {
	out   *lane
	mask  uint32 // slots, less one
	tail  uint32 // frames written
	free  uint32 // frames known to be taken
	held  uint32 // messages known to be asked for
	heard uint64 // casts known to be taken

	asked []uint32 // of those, the ones that no loan has answered
	loans int      // messages that are lent: no more than the peer can ask for
}

// A receiver is the half of a link that reads.
type receiver struct {
	in       *lane
	head     uint32         // frames taken
	asks     uint32         // messages asked for
	casts    unsafe.Pointer // the peer's; nil where there are none
	castHead uint64         // casts taken, or not for this rank
	posted   []*recv        // receives that no message has come for, in order
	aside    []*message     // messages that were put aside, in order
	flows    []flow         // messages of which more is to come
	blocked  bool           // the frame at the head waits until somebody expects it
}

// room reports whether a frame can be written.
func (l *link) room() bool { return l.roomFor(1) }

// roomFor reports whether n frames can be written, one or more.
func (l *link) roomFor(n uint32) bool {
	if l.tail-l.free+n-1 <= l.mask {
		return true
	}
	l.free = l.out.taken.Load()
	return l.tail-l.free+n-1 <= l.mask
}

// took reports whether the peer has taken a frame. That it has not is true of the
// last few frames only: numbers begin anew, and a box may name one of long ago.
func (l *link) took(number uint32) bool {
	if number-l.free-1 >= l.tail-l.free {
		return true
	}
	l.free = l.out.taken.Load()
	return number-l.free-1 >= l.tail-l.free
}

// blank returns the slot of the next frame, for which there is room.
func (l *link) blank() *slot { return l.out.slot(l.tail & l.mask) }

// write hands over the frame in the blank slot.
func (l *link) write(s *slot, k kind) {
	l.tail++
	publish(&s.turn, turn(l.tail, k))
	l.tell(wrote)
}

// news is what a peer has not been told yet: one that sleeps would not notice.
type news uint8

const (
	wrote   news = 1 << iota // a frame is in its lane
	tookOne                  // a frame of its own is taken
)

// tell has the endpoint look soon whether the peer sleeps for the news.
func (l *link) tell(what news) {
	if l.news == 0 {
		l.e.untold = append(l.e.untold, l)
	}
	l.news |= what
}

// tellAll wakes the peers that sleep for what has been written and taken. That is
// visible to them before their status is read here: a rank that goes to sleep
// says so first, and then looks once more.
func (e *Endpoint) tellAll() {
	if len(e.untold) == 0 {
		return
	}
	e.fence.Add(1)
	for _, l := range e.untold {
		what := l.news
		l.news = 0
		switch w := l.seat.status.Load(); {
		case w == joined:
		case w&stageAll >= left:
			e.partings = true
		case what&wrote != 0 && (w&forMail != 0 || w>>byRank == uint64(e.cfg.Rank)+1), what&tookOne != 0 && w&forAcks != 0:
			l.seat.wake(w)
		}
	}
	e.untold = e.untold[:0]
}

// next returns the slot of the next frame from the peer, or nil.
func (l *link) next() (*slot, kind) {
	s, k := l.nextInLane()
	if l.casts == nil || s != nil && l.precedes(s, k) {
		return s, k
	}
	c := l.nextCast()
	if s == nil && c != nil {
		s, k = l.nextInLane() // it may have come before the cast
	}
	for c == nil && s != nil && !l.precedes(s, k) {
		l.castHead++ // its slot is written anew, so that what it held was for others
		c = l.nextCast()
	}
	switch {
	case s != nil && (c == nil || l.precedes(s, k)):
		return s, k
	case c != nil:
		return c, cast
	}
	return nil, 0
}

func (l *link) nextInLane() (*slot, kind) {
	s := l.in.slot(l.head & l.mask)
	t := s.turn.Load()
	if t>>8 != (l.head+1)&(1<<24-1) || t&0xff == 0 {
		return nil, 0
	}
	return s, kind(t)
}

// take lets go of the frame at the head of the lane.
func (l *link) take() {
	l.head++
	publish(&l.in.taken, l.head)
	l.tell(tookOne)
	l.e.moved = true
}

// takeLine lets go of a frame that has no box, and looks at once whether the peer
// sleeps: what has to be told seldom need not be noted every time. The store is
// visible before the status is read.
func (l *link) takeLine() {
	l.head++
	l.in.taken.Store(l.head)
	if l.seat.status.Load() != joined {
		l.tell(tookOne)
	}
	l.e.moved = true
}

// signature returns the call that a frame belongs to.
func (l *link) signature(s *slot) transport.Signature {
	return transport.Signature{Context: s.context, Sequence: s.sequence, Call: l.seat.call(uint32(s.call))}
}

// reach says whether this process can read the peer's memory.
type reach uint8

const (
	unknown reach = iota
	within
	beyond
)

// reaches tries it, once, as soon as the peer has said how.
func (l *link) reaches() bool {
	if l.reach == unknown {
		var b [8]byte
		word := l.seat.word.Load()
		if l.e.cfg.Apart || word == 0 {
			return false
		}
		l.reach = beyond
		err := readPeer(int(l.seat.pid.Load()), b[:], uintptr(l.seat.address.Load()))
		if err == nil && *(*uint64)(unsafe.Pointer(&b)) == word {
			l.reach = within
		} else if l.seat.stage() == joined {
			l.e.denied = true
		}
	}
	return l.reach == within
}

// alive counts the endpoints of this process: each may spin if it is alone, or
// if all have a thread.
var alive atomic.Int32
