package inproc

import (
	"sync/atomic"
	"unsafe"

	"github.com/chorale-go/chorale/transport"
)

// Two ranks share two pair cells in each context, which go back and forth between them.
// A rank holds a cell from when it has read the peer's message there until it publishes
// a message of its own; at first each holds one. So it writes where it has just read, in
// cache lines that are its own already, where a cell of a link must first be fetched from
// its receiver.
//
// A message goes into a pair cell if the sender holds one, and into the link otherwise.
// In a pair cell, the header says how many messages of the link were sent before, where it
// has the acknowledgment elsewhere.
//
// A rank that holds both writes to the one that it has read last. So ranks that take
// turns use one cell, and ranks that exchange messages swap two.
type pairCells struct {
	_     [cacheLine - 8]byte // the allocator prepends 8 bytes
	cells [2]pairCell
	sides [2]pairSide // of the lower rank, and of the other
}

const pairRanks = 2 // ranks of a job in which there are pair cells

// A pairCell is a cell whose data goes on behind it.
type pairCell struct {
	cell
	_ [bufferedMax - inlineMax]byte
	_ [cacheLine - inlineMax]byte
}

// A pairSide is used by one rank, except that anyone may read acked.
type pairSide struct {
	held    [2]bool       // cells
	last    uint8         // the cell that was read or written last
	likely  uint8         // the cell of the peer's next message, if it does as before
	turns   bool          // the peer has answered in the cell of this rank's last message
	written uint32        // messages of this rank
	read    uint32        // messages of the peer
	acked   atomic.Uint32 // the same, for the peer
	_       [cacheLine - 20]byte
}

func newPairCells() *pairCells {
	p := new(pairCells)
	for i := range p.sides {
		s := &p.sides[i]
		s.held[i] = true
		s.last, s.likely = uint8(i), uint8(1-i)
	}
	return p
}

// pairNumber returns what the sequence word holds for the n-th message of a side.
func pairNumber(n uint32, side int) uint32 { return n<<1 | uint32(side) }

// bytes returns the bytes of a message of n bytes in a pair cell.
func (c *pairCell) bytes(n int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(c), unsafe.Offsetof(c.data))), bufferedMax)[:n:n]
}

// writePair writes a message into a pair cell, if there is one for it.
func (l *link) writePair(sig *transport.Signature, data []byte) bool {
	if len(data) > bufferedMax {
		return false
	}
	side := int(l.from)
	s := &l.pair.sides[side]
	i := s.last
	if !s.held[i] {
		if i ^= 1; !s.held[i] {
			return false
		}
	}
	s.held[i] = false
	s.last, s.likely = i, i
	if !s.turns {
		s.likely ^= 1
	}
	c := &l.pair.cells[i]
	c.callNumber, c.call = sig.Sequence, sig.Call
	c.size = sizeAndAck(len(data))<<16 | sizeAndAck(uint16(l.sender.written))
	copy(c.bytes(len(data)), data)
	s.written++
	c.publish(pairNumber(s.written, side))
	return true
}

// nextPair returns the cell of the next message in a pair cell, or nil. Likely says to
// look only where it is likely.
func (l *link) nextPair(likely bool) *pairCell {
	from := int(l.from)
	s := &l.pair.sides[1-from]
	n := pairNumber(s.read+1, from)
	if i := s.likely; !s.held[i] && l.pair.cells[i].holds(n) {
		return &l.pair.cells[i]
	}
	if i := s.likely ^ 1; !likely && !s.held[i] && l.pair.cells[i].holds(n) {
		return &l.pair.cells[i]
	}
	return nil
}

// readPair notes that the next message in a pair cell was read.
func (l *link) readPair(c *pairCell) {
	s := &l.pair.sides[1-l.from]
	i := uint8(0)
	if c == &l.pair.cells[1] {
		i = 1
	}
	s.turns = i == s.last
	s.held[i], s.last = true, i
	s.read++
	s.acked.Store(s.read)
}

// unreadInPair returns how many messages of the link lie in pair cells. Any goroutine may
// call it.
func (l *link) unreadInPair() (n int) {
	if l.pair == nil {
		return 0
	}
	from := int(l.from)
	read := l.pair.sides[1-from].acked.Load()
	for i := range l.pair.cells {
		w := l.pair.cells[i].sequence.Load()
		if w != 0 && int(w&1) == from && int32(w-pairNumber(read, from)) > 0 {
			n++
		}
	}
	return n
}
