package shm

import (
	"sync/atomic"
	"unsafe"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
)

// Two ranks share two pair cells, which go back and forth between them. A rank holds a
// cell from when it has taken the peer's frame there until it publishes a frame of its
// own; at first each holds one. So it writes where it has just read, in cache lines that
// are its own already. In a ring the sender must take each line back from its receiver,
// which costs a second transfer of the line: between processors that share no cache, a
// message in a ring takes 230 ns, and 130 in a pair cell.
//
// A message goes into a pair cell if the sender holds one, and into the ring otherwise.
// A frame in a pair cell says how many frames of the ring were sent before it.
//
// One that holds both writes to the one that it has received last. So ranks that take
// turns use one cell, and ranks that exchange messages swap two.
const (
	pairRanks = 2       // ranks of a job in which there are pair cells
	pairMax   = 1 << 10 // bytes of the longest message of a step in a pair cell
	// pairDataMax is how many bytes a pair cell takes: of a tagged message, also the type.
	pairDataMax = pairMax + 32
)

const (
	pairCellLen = (lineLen - inlineMax + int(unsafe.Sizeof(pairPayload{})) + lineLen - 1) / lineLen * lineLen
	pairLen     = pairCellLen + lineLen // with the word that says what was taken
)

// pairCells is the part of a link that uses the pair cells.
type pairCells struct {
	cells   [2]*cell // nil where there are none
	held    [2]bool  // by this rank
	last    uint8    // the cell whose frame was taken last
	written uint32   // frames of this rank
	taken   uint32   // frames of the peer
	side    uint32   // 0 of the lower rank, 1 of the other
	likely  uint8    // the cell in which the peer's next frame is likely
	turns   bool     // the peer has answered in the cell of this rank's last frame

	takenByPeer *pairTaken // of the frames of this rank
	takenByThis *pairTaken // of the frames of the peer
}

// A pairTaken says how many pair frames of a rank its peer has taken. The rank looks at it
// when the peer has gone.
type pairTaken struct{ frames atomic.Uint32 }

func (p *pairCells) init(seg *segment, rank, peer int) {
	if seg.pairLen() == 0 || rank == peer {
		return
	}
	low, high := min(rank, peer), max(rank, peer)
	p.cells = [2]*cell{seg.pairCell(low, high), seg.pairCell(high, low)}
	p.takenByPeer, p.takenByThis = seg.pairTaken(rank, peer), seg.pairTaken(peer, rank)
	if rank == high {
		p.side = 1
	}
	p.last = uint8(p.side)
	p.likely = 1 - p.last
	p.held[p.last] = true
}

// pairNumber returns the number in the sequence word of the n-th frame of a side.
func pairNumber(n, side uint32) uint32 { return n<<1 | side }

// next returns which pair cell the next frame of this rank goes into, if it holds one.
func (p *pairCells) next() (i uint8, ok bool) {
	i = p.last
	if p.held[i] {
		return i, true
	}
	i ^= 1
	return i, p.held[i]
}

// writePair writes a message of a step into a pair cell, if there is one for it.
func (l *link) writePair(call *match.Call, message []byte) bool {
	i, ok := l.pair.next()
	if !ok || len(message) > pairMax || l.out.ring.admits.Load() != 0 {
		return false
	}
	c := l.pair.cells[i]
	c.setStep(len(message), call, l.e.out.multicast.written)
	c.setPair(l.out.written, message, "")
	l.publishPair(i, pairFrame)
	return true
}

// writeEagerPair writes an eager message into a pair cell, if there is one for it.
func (l *link) writeEagerPair(m transport.Match, typeName string, data []byte) bool {
	i, ok := l.pair.next()
	n := len(typeName) + len(data)
	if !ok || n > pairDataMax {
		return false
	}
	c := l.pair.cells[i]
	c.setTagged(n, m.Context, m.Tag, len(typeName))
	c.setPair(l.out.written, data, typeName)
	l.publishPair(i, eagerPairFrame)
	return true
}

// publishPair makes the frame in a pair cell visible to the peer, which holds the cell from
// then on.
func (l *link) publishPair(i uint8, k frameKind) {
	p := &l.pair
	p.held[i] = false
	p.last, p.likely = i, i
	if !p.turns {
		p.likely ^= 1
	}
	p.written++
	p.cells[i].publish(pairNumber(p.written, p.side), k)
	l.noteWakeup(wrote)
}

// nextPair returns the cell of the peer's next pair frame, or nil.
func (p *pairCells) nextPair() (*cell, frameKind) {
	if k := p.isNext(p.likely); k != 0 {
		return p.cells[p.likely], k
	}
	if k := p.isNext(p.likely ^ 1); k != 0 {
		return p.cells[p.likely^1], k
	}
	return nil, 0
}

// isNext returns the kind of the peer's next pair frame if that is in a cell, or 0.
func (p *pairCells) isNext(i uint8) frameKind {
	if p.held[i] || p.cells[i] == nil {
		return 0
	}
	k, ok := p.cells[i].holds(pairNumber(p.taken+1, p.side^1))
	if !ok || k != pairFrame && k != eagerPairFrame {
		return 0
	}
	return k
}

// peek reports whether a message of some size has arrived where it is likely.
func (l *link) peek(size int) bool {
	if p := &l.pair; size <= pairMax && p.cells[0] != nil {
		return p.isNext(p.likely) != 0
	}
	_, ok := l.in.cell(l.in.taken & l.in.mask).holds(l.in.taken + 1)
	return ok
}

// has reports whether a cell is a pair cell.
func (p *pairCells) has(c *cell) bool { return c == p.cells[0] || c == p.cells[1] }

// takePair notes that a pair frame was taken.
func (l *link) takePair(c *cell) {
	p := &l.pair
	i := uint8(0)
	if c == p.cells[1] {
		i = 1
	}
	p.turns = i == p.last
	p.held[i], p.last = true, i
	p.taken++
	storeRelease(&p.takenByThis.frames, p.taken)
	l.e.polls.progressed = true
}

// drained reports whether the peer has taken all pair frames.
func (p *pairCells) drained() bool {
	return p.takenByPeer == nil || p.takenByPeer.frames.Load() == p.written
}
