package inproc

import (
	"sync/atomic"
	"unsafe"
)

// Two ranks alone also share two tagged pair cells, which go back and forth between them as
// those of pair.go do. A tagged message of up to ringMax bytes goes there if its sender holds
// one, and into the ring otherwise. After says how many messages of the ring were sent before.
//
// A rank holds a cell whose message it has read. The number in the cell, and how many
// messages the rank has read, say whether that is so: the sender, under the lock of its ring,
// and the reader, under the lock of its queue, have no other state in common.
type taggedPairCells struct {
	_     [cacheLine - 8]byte // the allocator prepends 8 bytes
	cells [2]taggedPairCell
	sides [2]taggedPairSide // of the lower rank, and of the other
}

// A taggedPairCell is a cell whose data goes on behind it.
type taggedPairCell struct {
	taggedCell
	_ [ringMax - taggedInlineMax]byte
	_ [cacheLine - (ringMax-taggedInlineMax)%cacheLine]byte
}

// A taggedPairSide is what a rank has read. Whoever reads in its place writes it.
type taggedPairSide struct {
	read atomic.Uint64 // messages of the peer, times 2, and the cell of the last one
	_    [cacheLine - 8]byte
}

// A ringPair is the part of a ring that uses the pair cells. Nil cells: there are none.
type ringPair struct {
	*taggedPairCells
	side uint64 // of the ring's sender
}

// pairOf returns what the ring from a sender to this rank has of their pair cells.
func (e *Endpoint) pairOf(sender int) ringPair {
	j := e.job
	if len(j.endpoints) != pairRanks || sender == e.rank {
		return ringPair{}
	}
	j.taggedPair.CompareAndSwap(nil, newTaggedPairCells())
	return ringPair{taggedPairCells: j.taggedPair.Load(), side: uint64(sender)}
}

func newTaggedPairCells() *taggedPairCells {
	p := new(taggedPairCells)
	for i := range p.cells { // as if each side had read a message there
		p.cells[i].number.Store(taggedPairNumber(0, 1-uint64(i)))
		p.sides[i].read.Store(uint64(i))
	}
	return p
}

// taggedPairNumber returns the number in the cell of the n-th message of a side. It does not
// wrap around: the message in a cell that two ranks do not use is an old one for ever.
func taggedPairNumber(n, side uint64) uint64 { return n<<1 | side }

// free returns the cell of the sender's next message, or nil if it holds none. Of two it is
// the one that the sender has read last. The ring is locked.
func (p *ringPair) free() *taggedPairCell {
	if p.taggedPairCells == nil {
		return nil
	}
	read := p.sides[p.side].read.Load()
	for _, i := range [2]uint64{read & 1, read&1 ^ 1} {
		c := &p.cells[i]
		if n := c.number.Load(); n&1 != p.side && n>>1 <= read>>1 {
			return c
		}
	}
	return nil
}

// next returns the cell of the next message in a pair cell, or nil.
func (p *ringPair) next() *taggedPairCell {
	if p.taggedPairCells == nil {
		return nil
	}
	n := taggedPairNumber(p.sides[1-p.side].read.Load()>>1+1, p.side)
	for i := range p.cells {
		if p.cells[i].holds(n) {
			return &p.cells[i]
		}
	}
	return nil
}

// take notes that the message of a cell was read. The queue is locked.
func (p *ringPair) take(c *taggedPairCell) {
	read := &p.sides[1-p.side].read
	count := read.Load()>>1 + 1
	if c == &p.cells[0] {
		read.Store(count << 1)
	} else {
		read.Store(count<<1 | 1)
	}
}

// bytes returns the bytes of a message of n bytes in a pair cell.
func (c *taggedPairCell) bytes(n int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(c), unsafe.Offsetof(c.data))), ringMax)[:n:n]
}
