package shm

import (
	"errors"
	"unsafe"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
)

// A link is what an endpoint has to do with one peer.
type link struct {
	e        *Endpoint
	peer     int
	state    *rankState // of the peer
	err      error      // why nothing comes from the peer any more
	busy     bool       // it is in the poll set
	wakeups  wakeups    // what the peer may sleep for
	out      sendRing
	in       recvRing
	pair     pairCells
	tagged   taggedLink
	cma      cmaState
	process  process // of the peer, if this one can read its memory
	arena    []byte  // of the peer; nil until it is needed
	attached bool    // the caller has memory of it
	wasGone  bool    // the peer's process had ended when it was last checked
	heard    uint64  // revocations of the peer
}

// A sendRing is the half of a link that writes to the peer.
type sendRing struct {
	*ring
	mask       uint32 // cells, less one
	written    uint32 // frames
	roomSeen   uint32 // frames known to be taken when the peer last admitted every context
	takenSeen  uint32 // frames known to be taken
	multicasts uint64 // multicast frames known to be taken
	places     uint32 // a bit for each place of a rendezvous message
}

// A recvRing is the half of a link that reads.
type recvRing struct {
	*ring
	mask    uint32
	taken   uint32 // frames
	replies uint32 // the word that this rank has written
	places  uint32 // a bit for each place with a message that was deferred, or is pulled

	multicastCells unsafe.Pointer // of the peer; nil where there are none
	multicasts     uint64         // multicast frames of the peer that were taken, or are for other ranks

	queue          match.Queue
	held           int       // contexts in which too much is unexpected
	unexpectedLen  int       // what the unexpected messages take, in bytes
	rotation       int       // of the contexts that are admitted then
	partials       []partial // messages of which more is to come
	headUnexpected bool      // the frame at the head waits until it is expected
}

func (l *link) init(e *Endpoint, peer int) {
	seg, rank, mask := e.seg, e.cfg.Rank, uint32(e.seg.depth-1)
	l.e, l.peer, l.state = e, peer, seg.rankState(peer)
	l.out = sendRing{ring: seg.ring(rank, peer), mask: mask}
	l.in = recvRing{ring: seg.ring(peer, rank), mask: mask, multicastCells: seg.multicastCells(peer)}
	l.pair.init(seg, rank, peer)
	l.tagged.take, l.tagged.Claimed = l.takeOffered, l.isClaimed
}

// hasGone reports whether the peer has left, or is lost.
func (l *link) hasGone() bool { return l.err != nil || l.state.lifecycle() >= left }

// room reports whether n frames of steps can be written, one or more, of whatever
// context. While the peer does not admit every context, that is mostly false.
func (s *sendRing) room(n uint32) bool {
	return s.written-s.roomSeen+n-1 <= s.mask || s.lookForRoom(n)
}

func (s *sendRing) lookForRoom(n uint32) bool {
	if s.ring.admits.Load() != 0 {
		return false
	}
	s.takenSeen = s.ring.taken.Load()
	s.roomSeen = s.takenSeen
	return s.written-s.roomSeen+n-1 <= s.mask
}

// roomIn reports whether a frame of a context can be written.
func (s *sendRing) roomIn(context uint32) bool {
	return s.room(1) || s.hasCell() && s.admitsContext(context)
}

// hasCell reports whether there is a cell for a frame that the peer always takes.
func (s *sendRing) hasCell() bool {
	if s.written-s.takenSeen <= s.mask {
		return true
	}
	s.takenSeen = s.ring.taken.Load()
	return s.written-s.takenSeen <= s.mask
}

// hasTaken reports whether the peer has taken a frame. Frames takenSeen+1 to written may
// be untaken; every other number, of a frame of long ago, counts as taken, since numbers
// wrap around.
func (s *sendRing) hasTaken(number uint32) bool {
	if number-s.takenSeen-1 >= s.written-s.takenSeen {
		return true
	}
	s.takenSeen = s.ring.taken.Load()
	return number-s.takenSeen-1 >= s.written-s.takenSeen
}

// drained reports whether the peer has taken all frames.
func (s *sendRing) drained() bool { return s.hasTaken(s.written) }

// next returns the cell of the next frame, for which there is room.
func (s *sendRing) next() *cell { return s.cell(s.written & s.mask) }

// publish makes the frame in the next cell visible to the peer.
func (l *link) publish(c *cell, k frameKind) {
	l.out.written++
	c.publish(l.out.written, k)
	l.noteWakeup(wrote)
}

// next returns the cell of the next frame from the peer, or nil.
func (l *link) next() (*cell, frameKind) {
	c, k := l.nextUnicast()
	if l.in.multicastCells == nil || c != nil && l.in.precedes(c, k) {
		return c, k
	}
	m := l.nextMulticast()
	if c == nil && m != nil {
		c, k = l.nextUnicast() // it may have been written before the multicast frame
	}
	for n := 0; m == nil && c != nil && !l.in.precedes(c, k); n++ {
		if n == 2*multicastDepth { // the frame is said to follow more than there are
			l.protocolError()
			return nil, 0
		}
		l.in.multicasts++ // its cell has been reused, so that the frame was for other ranks
		m = l.nextMulticast()
	}
	switch {
	case c != nil && (m == nil || l.in.precedes(c, k)):
		return c, k
	case m != nil:
		return m, multicastFrame
	}
	return nil, 0
}

// nextUnicast returns the cell of the next frame from the peer to this rank alone, or nil.
func (l *link) nextUnicast() (*cell, frameKind) {
	c, k := l.in.nextInRing()
	p, kind := l.pair.nextPair()
	switch {
	case p == nil:
		return c, k
	case p.pair().after == l.in.taken:
		return p, kind
	case c == nil: // what the ring has was written before the pair frame
		if c, k = l.in.nextInRing(); c == nil {
			l.protocolError()
		}
	}
	return c, k
}

func (r *recvRing) nextInRing() (*cell, frameKind) {
	c := r.cell(r.taken & r.mask)
	k, ok := c.holds(r.taken + 1)
	if !ok {
		return nil, 0
	}
	return c, k
}

// take releases the cell of the frame at the head of the ring.
func (l *link) take() {
	l.in.taken++
	l.in.release(l.in.taken)
	l.noteWakeup(took)
	l.e.polls.progressed = true
}

// takeInline releases the cell of an inline frame on the fast path. It loads the peer's
// status word at once: mostly the peer does not sleep, and no wake-up is pending then.
func (l *link) takeInline() {
	l.in.taken++
	l.in.releaseFenced(l.in.taken)
	if l.state.status.Load() != joined {
		l.noteWakeup(took)
	}
	l.e.polls.progressed = true
}

// signature returns a call of the peer with its text.
func (l *link) signature(c *match.Call) transport.Signature {
	s := c.Signature
	s.Call = l.state.call(c.Hash)
	return s
}

// A process is that of a peer. Another one may have its number when it has ended. What was
// read is the peer's if the kernel has not marked its end afterwards. Where the kernel does
// not, a word is read with it, at an address at which no other process has that word.
type process struct {
	pid   int
	word  uintptr // its address
	value uint64
	state *rankState // of the peer
	owner uint32     // in state; 0 where the kernel marks nothing
}

// errOtherProcess says that what was read is not the peer's: its process has ended, and
// another one may have its number.
var errOtherProcess = errors.New("another process")

// read reads the process's memory.
func (p *process) read(into []byte, address uintptr) error {
	if p.owner != 0 && len(into) > 0 {
		if err := readPeer(p.pid, into, address, nil, 0); err != nil {
			return err
		}
		if p.state.ownedBy(p.owner) {
			return nil
		}
	}
	var word uint64
	if err := readPeer(p.pid, into, address, &word, p.word); err != nil {
		return err
	}
	if word != p.value {
		return errOtherProcess
	}
	return nil
}

// cmaState says whether this process can read a peer's memory.
type cmaState uint8

const (
	cmaUnknown cmaState = iota
	cmaWorks
	cmaFails
)

// canReadPeer reports whether this process can read the peer's memory by
// cross-memory attach. It tries once, as soon as the peer has published where. The
// process that the peer names must be its own.
func (l *link) canReadPeer() bool {
	if l.cma == cmaUnknown {
		p := &l.state.cma
		value, pid := p.value.Load(), p.pid.Load()
		peer := process{int(pid), uintptr(p.address.Load()), value, l.state, l.state.owner.Load()}
		own := l.e.seg.own
		if l.e.cfg.NoCMA || value == 0 {
			return false
		}
		l.cma = cmaFails
		switch {
		case own == nil || !holdsRank(own, l.peer, pid, p.descriptor.Load()):
		case peer.read(nil, 0) != nil:
		default:
			l.process, l.cma = peer, cmaWorks
		}
		if l.cma == cmaFails && l.state.lifecycle() == joined {
			l.e.cma.denied = true
		}
	}
	return l.cma == cmaWorks
}
