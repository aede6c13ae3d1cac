package inproc

import (
	"sync/atomic"
	"unsafe"

	"github.com/chorale-go/chorale/transport"
)

// Capacity is how many short messages of a context a rank may send to another one that has
// received none of them. In a job of more than [DeepRanks] ranks it is 2.
const Capacity = 8

// DeepRanks is how many ranks a job has at most whose links keep Capacity messages. Those of a
// large job are many, and take less memory.
const DeepRanks = 64

const (
	depth       = Capacity // cells of a link, the most messages that are unread: a power of two
	shallow     = 2        // the same, in a large job
	inlineMax   = 32       // bytes of the longest inline message
	bufferedMax = 1024     // bytes of the longest buffered message
	cacheLine   = 64       // bytes
)

// A link carries the messages of one context from one rank to another: a ring of
// cells with one writer and one reader. The link is made when the two ranks first
// exchange a message. Each side has a cache line of its own; the lines of the
// cells move between the sides.
//
// The sizes of a link and of its cells are multiples of a line and at most 512 bytes. The
// allocator aligns these to lines, and prepends a header to larger objects.
type link struct {
	sender senderSide
	_      [cacheLine - unsafe.Sizeof(senderSide{})]byte

	receiver receiverSide
	_        [cacheLine - unsafe.Sizeof(receiverSide{})]byte

	// Nobody writes these while the link is in use. The fields above are on lines that one
	// side writes whenever it polls.
	cells    []cell
	memory   []cellMemory // of the messages that are longer than a cell
	pair     *pairCells   // of both directions; nil where there are none
	mask     uint32       // cells, less one
	from     uint8        // the number of the sender among the two ranks of a pair
	released bool         // by one of its sides; under Job.mu
	_        [2]byte
}

// A cellMemory has the bytes of the message in a cell. The sender writes it. The receiver
// reads it while it owns the cell.
type cellMemory struct {
	rendezvous []byte // the sender's memory, of a rendezvous message
	buffer     []byte // the bytes of a buffered message; made at first use
}

// newLink returns a link with so many cells.
func newLink(from, to *commState, cells int) *link {
	return &link{
		sender: senderSide{to: to}, receiver: receiverSide{from: from},
		cells: make([]cell, cells), memory: make([]cellMemory, cells), mask: uint32(cells - 1),
	}
}

// linkDepth returns how many cells the links of a job have.
func (j *Job) linkDepth() int {
	if len(j.endpoints) > DeepRanks {
		return shallow
	}
	return depth
}

// peer returns the rank at the other side than s.
func (l *link) peer(s *commState) int {
	if l.sender.to == s {
		return l.receiver.from.endpoint.rank
	}
	return l.sender.to.endpoint.rank
}

// The senderSide of a link is used by the sender, except that anyone may read to.
type senderSide struct {
	to      *commState
	written uint32 // messages written: the number of the last one
	read    uint32 // messages known to have been read
	ackFrom uint32 // the first message of reverse whose acknowledgment is not older than read
	fullIn  uint64 // the last pass that found no free cell
	reverse *link  // from the receiver to the sender, if it has been used
}

// The receiverSide of a link is used by the receiver, except that anyone may read
// from, and the sender reads acked.
type receiverSide struct {
	from    *commState
	read    uint32        // messages read: the number of the last one
	acked   atomic.Uint32 // the same, for the sender
	emptyIn uint64        // the last pass that found no message
	reverse *link         // from the receiver to the sender, if it has been used
}

// A cell is one cache line with one message.
type cell struct {
	sequence   atomic.Uint32 // the number of the message; see ordering.go
	callNumber uint32        // Signature.Sequence
	call       string        // Signature.Call
	size       sizeAndAck
	data       [inlineMax]byte // the bytes of an inline message
}

// A sizeAndAck holds the size of a message in bytes and, in the low 16 bits, how
// many messages its sender has read from its receiver. With this acknowledgment,
// two ranks that exchange messages need not fetch each other's read count.
type sizeAndAck uint64

func (s sizeAndAck) size() int { return int(s >> 16) }

func (s sizeAndAck) ack() uint16 { return uint16(s) }

// header returns the sizeAndAck of a message of n bytes.
func (l *link) header(n int) sizeAndAck {
	h := sizeAndAck(n) << 16
	if r := l.sender.reverse; r != nil {
		h |= sizeAndAck(uint16(r.receiver.read))
	}
	return h
}

// acknowledged notes the acknowledgment in the header of message n of the opposite
// direction. If it is not older than what the sender knows, it is ahead of that by
// the messages of this link's cells at most, so that 16 bits tell.
func (l *link) acknowledged(n uint32, ack uint16) {
	if int32(n-l.sender.ackFrom) >= 0 {
		l.sender.read += uint32(ack - uint16(l.sender.read))
	}
}

// fetchReadCount loads the receiver's read count. It is newer than the
// acknowledgments of all messages of the opposite direction that may have been
// written by now: those that this rank has read, and one for each cell.
func (l *link) fetchReadCount() {
	l.sender.read = l.readCount()
	l.sender.ackFrom = l.mask + 2
	if r := l.sender.reverse; r != nil {
		l.sender.ackFrom += r.receiver.read
	}
}

// unread returns how many messages lie in the cells. Any goroutine may call it.
func (l *link) unread() (n int) {
	read := l.readCount()
	for i := range l.cells {
		written := l.cells[i].sequence.Load()
		canceled := (written-1)&l.mask != uint32(i) // or being read
		if int32(written-read) > 0 && !canceled {
			n++
		}
	}
	return n + l.unreadInPair()
}

// pair makes two links between the same two ranks known to each other. The caller
// sends by out and receives by in; either may be nil.
func pair(out, in *link) {
	if out != nil && in != nil {
		out.sender.reverse, in.receiver.reverse = in, out
	}
}

// cell returns the cell of message n, which is not in a pair cell.
func (l *link) cell(n uint32) *cell { return &l.cells[(n-1)&l.mask] }

// signature returns the call that the message in the cell belongs to.
func (c *cell) signature(context uint32) transport.Signature {
	return transport.Signature{Context: context, Sequence: c.callNumber, Call: c.call}
}

// A linkTable finds the link to or from a peer. It is a hash table with linear
// probing, because every message is a lookup.
type linkTable struct {
	entries []linkEntry // a power of two of them, at most half in use
	used    int
}

type linkEntry struct {
	peer int
	link *link // nil: the entry is free
}

// get returns the link of a peer, or nil.
func (t *linkTable) get(peer int) *link {
	if t.used == 0 {
		return nil
	}
	return t.find(peer).link
}

// put adds the link of a peer that has none.
func (t *linkTable) put(peer int, l *link) {
	if 2*(t.used+1) > len(t.entries) {
		old := t.entries
		t.entries = make([]linkEntry, max(4, 2*len(old)))
		for _, e := range old {
			if e.link != nil {
				*t.find(e.peer) = e
			}
		}
	}
	*t.find(peer) = linkEntry{peer, l}
	t.used++
}

// find returns the peer's entry, or the free entry where it belongs.
func (t *linkTable) find(peer int) *linkEntry {
	mask := uint64(len(t.entries) - 1)
	for i := uint64(peer) * 0x9e3779b97f4a7c15 >> 40 & mask; ; i = (i + 1) & mask {
		if e := &t.entries[i]; e.link == nil || e.peer == peer {
			return e
		}
	}
}
