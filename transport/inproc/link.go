package inproc

import (
	"sync/atomic"

	"github.com/chorale-go/chorale/transport"
)

const (
	depth    = 2    // messages that may be under way on a link
	inline   = 32   // bytes that travel in one cache line with their header
	buffered = 1024 // bytes that are copied, so that the sender need not wait
)

// A link carries the messages of one context from one rank to another. It is
// made when the two first have to do with each other, and has one writer and
// one reader, each with a cache line of its own; the slots go to and fro.
//
// A message of up to buffered bytes is copied and is the reader's from then
// on. A longer one is lent: the reader reads it where it lies, and the sender
// waits until that is done. (To wait costs the sender a round trip, and often
// a sleep; to copy 1 KiB costs a tenth of that.)
//
// The size is a multiple of 128, which aligns links to cache lines, and below
// 512, above which the allocator puts a header in front.
type link struct {
	slots [depth]slot

	// The sender's.
	to    *stream
	tail  uint32 // messages posted
	free  uint32 // messages known to be taken
	stuck uint64 // the last sweep that found no room here
	back  *link  // by which messages come from the receiver, if it has been used
	_     [32]byte

	// The receiver's.
	from   *stream
	head   uint32        // messages taken
	taken  atomic.Uint32 // the same, for the sender
	missed uint64        // the last sweep that found nothing here
	answer *link         // by which messages go to the sender, if it has been used
	_      [32]byte

	// The sender's, and the receiver's to read while the slot is full.
	lent  [depth][]byte
	boxes [depth][]byte // made when first needed

	released bool // by one of its ends; under Job.mu
	_        [31]byte
}

// A slot is one cache line with one message. The message with number i of its
// link is there when turn is i+1.
type slot struct {
	turn     atomic.Uint32
	sequence uint32
	call     string
	size     sizeAndTaken
	data     [inline]byte
}

// A sizeAndTaken is the length of a message, and below, in 16 bits, how many
// messages its sender has taken from its receiver. So who exchanges messages need
// not fetch the line in which the other counts them.
type sizeAndTaken uint64

func (s sizeAndTaken) size() int { return int(s >> 16) }

// hear notes what the peer has said that it has taken. It may have told more in
// the meantime.
func (l *link) hear(s sizeAndTaken) {
	if more := uint16(s) - uint16(l.free); more <= depth {
		l.free += uint32(more)
	}
}

// pair lets two links between the same ranks know of each other. Out is the
// caller's to send by, in the one by which it receives.
func pair(out, in *link) {
	if out != nil && in != nil {
		out.back, in.answer = in, out
	}
}

// post puts a message on the link, unless it is full.
func (l *link) post(sig *transport.Signature, data []byte) bool {
	if l.tail-l.free == depth {
		if l.free = l.taken.Load(); l.tail-l.free == depth {
			return false
		}
	}
	i := l.tail % depth
	s := &l.slots[i]
	s.sequence, s.call, s.size = sig.Sequence, sig.Call, sizeAndTaken(len(data))<<16
	if l.back != nil {
		s.size |= sizeAndTaken(uint16(l.back.head))
	}
	switch n := len(data); {
	case n <= inline:
		copy(s.data[:], data)
	case n <= buffered:
		if len(l.boxes[i]) < n {
			l.boxes[i] = make([]byte, n)
		}
		copy(l.boxes[i], data)
	default:
		l.lent[i] = data
	}
	l.tail++
	s.turn.Store(l.tail)
	return true
}

// next returns the slot of the next message, or nil when it has not come.
func (l *link) next() *slot {
	s := &l.slots[l.head%depth]
	if s.turn.Load() != l.head+1 {
		return nil
	}
	return s
}

// take does what the receive says with the next message, which has come, and
// reports whether it was still there: a lent one may be withdrawn.
func (l *link) take(r *transport.Recv) bool {
	i := l.head % depth
	if l.answer != nil {
		l.answer.hear(l.slots[i].size)
	}
	switch n := len(r.Into); {
	case n <= inline:
		land(r, l.slots[i].data[:n])
	case n <= buffered:
		land(r, l.boxes[i][:n])
	case !l.claim(l.head + 1):
		return false
	default:
		defer l.from.acknowledge() // also when Combine panics
		land(r, l.lent[i])
	}
	l.head++
	l.taken.Store(l.head)
	if l.from.wait.Load()&forRoom != 0 {
		l.from.rouse()
	}
	return true
}

// land does with the bytes of a message what the receive says.
func land(r *transport.Recv, data []byte) {
	if r.Combine == nil {
		transport.Copy(r.Into, data, r.Temporal)
	} else if len(data) > 0 {
		r.Combine(r.Into, r.Held, data)
	}
}

// claim takes the right to a lent message from the other end of the link: the
// receiver's to read it, or the sender's to take it back. One of them gets it.
func (l *link) claim(turn uint32) bool {
	// No message in this slot has turn+1.
	return l.slots[(turn-1)%depth].turn.CompareAndSwap(turn, turn+1)
}

// unclaimed reports whether a lent message still waits for its reader.
func (l *link) unclaimed(turn uint32) bool { return l.slots[(turn-1)%depth].turn.Load() == turn }

// signature returns what the message in the slot belongs to.
func (s *slot) signature(context uint32) transport.Signature {
	return transport.Signature{Context: context, Sequence: s.sequence, Call: s.call}
}

// A table finds the links to or from a peer: a hash table with linear probing,
// because every message looks something up.
type table struct {
	entries []entry // a power of two of them, at most half in use
	used    int
}

type entry struct {
	peer int
	link *link // nil where the entry is free
}

// get returns the link of a peer, or nil.
func (t *table) get(peer int) *link {
	if t.used == 0 {
		return nil
	}
	return t.find(peer).link
}

// put adds the link of a peer that has none.
func (t *table) put(peer int, l *link) {
	if 2*(t.used+1) > len(t.entries) {
		old := t.entries
		t.entries = make([]entry, max(4, 2*len(old)))
		for _, e := range old {
			if e.link != nil {
				*t.find(e.peer) = e
			}
		}
	}
	*t.find(peer) = entry{peer, l}
	t.used++
}

// find returns the peer's entry, or the free one where it belongs.
func (t *table) find(peer int) *entry {
	mask := uint64(len(t.entries) - 1)
	for i := uint64(peer) * 0x9e3779b97f4a7c15 >> 40 & mask; ; i = (i + 1) & mask {
		if e := &t.entries[i]; e.link == nil || e.peer == peer {
			return e
		}
	}
}
