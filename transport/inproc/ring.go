package inproc

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
)

// A taggedRing carries short tagged messages, and references to rendezvous messages, from one
// rank to another, beside the queue of the receiver: the sender writes one cache line, or one
// and a buffer, and takes no lock of the receiver's. ordering.go has the protocol.
//
// Whoever holds the lock of the receiver's queue reads the ring: the receiver as it looks
// for a message; and the sender before it puts a message into the queue itself, because
// that is long or the ring is full, and after it has written while the receiver sleeps. So
// messages of a sender stay in order.
//
// The ring also has the credits of the messages from its sender, in the ring and in the
// queue: what those cost that were not received is [transport.TaggedMax] at most.
type taggedRing struct {
	from  int
	cells *taggedCells // nil: the receiver has rings enough
	pair  ringPair
	_     [cacheLine - 32]byte

	mu     sync.Mutex               // guards the fields up to the padding
	inPair uint64                   // messages written in pair cells
	number uint32                   // messages written in the ring
	seen   uint32                   // messages known to be read
	used   uint64                   // the cost of all eager messages
	repaid uint64                   // the cost of those known to be received
	bytes  [ringDepth][]byte        // of messages that are longer than a cell takes; made at first use
	sends  [ringDepth]*match.Tagged // rendezvous messages
	_      [cacheLine]byte

	// The receiver writes these, under the lock of its queue.
	read     atomic.Uint32 // messages
	received atomic.Uint64 // the cost of the eager messages that were received
	_        [cacheLine]byte
}

// The cells of a ring lie on cache lines: the allocator prepends 8 bytes.
type taggedCells struct {
	_     [cacheLine - 8]byte
	cells [ringDepth]taggedCell
}

func (c *taggedCells) at(i uint32) *taggedCell { return &c.cells[i] }

// A taggedCell is one cache line with one message.
type taggedCell struct {
	number  atomic.Uint64 // of the message
	tag     int
	kind    string
	context uint32
	size    uint16 // or announced
	after   uint16 // in a pair cell: the messages of the ring that were sent before, modulo 2^16
	data    [taggedInlineMax]byte
}

// announced is the size in the cell of a rendezvous message.
const announced = 1<<16 - 1

const (
	ringDepth       = 16
	ringMax         = 1024 // bytes of the longest message in a ring that is copied there
	taggedInlineMax = 24   // bytes of the longest message in a cell
	ringsMax        = 64   // rings with cells to one rank
)

// write writes a message if there is room. It is not longer than ringMax.
func (r *taggedRing) write(context uint32, tag int, kind string, data []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.pair.free(); c != nil {
		if !r.charge(len(data)) {
			return false
		}
		c.context, c.tag, c.size, c.kind, c.after = context, tag, uint16(len(data)), kind, uint16(r.number)
		copy(c.bytes(len(data)), data)
		r.inPair++
		c.publish(taggedPairNumber(r.inPair, r.pair.side))
		return true
	}
	if !r.hasRoom() || !r.charge(len(data)) {
		return false
	}
	i := r.number % ringDepth
	c := r.cells.at(i)
	c.context, c.tag, c.size, c.kind = context, tag, uint16(len(data)), kind
	if len(data) <= taggedInlineMax {
		copy(c.data[:], data)
	} else {
		if r.bytes[i] == nil {
			r.bytes[i] = make([]byte, ringMax)
		}
		copy(r.bytes[i], data)
	}
	r.number++
	c.publish(uint64(r.number))
	return true
}

// announce writes a rendezvous message if there is room.
func (r *taggedRing) announce(m *match.Tagged) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.hasRoom() {
		return false
	}
	i := r.number % ringDepth
	c := r.cells.at(i)
	c.context, c.tag, c.size, c.kind = m.Context, m.Tag, announced, m.Type
	r.sends[i] = m
	r.number++
	c.publish(uint64(r.number))
	return true
}

// hasRoom reports whether a cell is free.
func (r *taggedRing) hasRoom() bool {
	if r.cells == nil {
		return false
	}
	if r.number-r.seen == ringDepth {
		r.seen = r.read.Load()
	}
	return r.number-r.seen < ringDepth
}

// use takes the credits for an eager message of a size, and reports whether they suffice.
func (r *taggedRing) use(size int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.charge(size)
}

func (r *taggedRing) charge(size int) bool {
	used := r.used + uint64(size+transport.MessageCost)
	if used-r.repaid > transport.TaggedMax {
		if r.repaid = r.received.Load(); used-r.repaid > transport.TaggedMax {
			return false
		}
	}
	r.used = used
	return true
}

// refund returns the credits of an eager message that was received. The queue is locked.
func (r *taggedRing) refund(size int) {
	r.received.Store(r.received.Load() + uint64(size+transport.MessageCost))
}

// ready reports whether a message is in the ring. Any goroutine may call it.
func (r *taggedRing) ready() bool {
	if r.cells == nil {
		return false
	}
	return r.pair.next() != nil || r.nextInRing() != nil
}

// nextInRing returns the cell of the oldest message in the ring, or nil if there is none.
func (r *taggedRing) nextInRing() *taggedCell {
	read := r.read.Load()
	if c := r.cells.at(read % ringDepth); c.holds(uint64(read + 1)) {
		return c
	}
	return nil
}

// A ringMessage is one in a ring.
type ringMessage struct {
	transport.MessageInfo
	context uint32
	data    []byte
	send    *match.Tagged // nil unless it goes by rendezvous
}

// first returns the cell of the oldest message, and which pair cell that is if it is one, or
// nil if there is no message. The queue is locked.
func (r *taggedRing) first() (*taggedCell, *taggedPairCell) {
	if r.cells == nil {
		return nil, nil
	}
	c := r.nextInRing() // before the pair cells: what was written there earlier is seen then
	p := r.pair.next()
	switch {
	case p == nil:
		return c, nil
	case p.after == uint16(r.read.Load()):
		return &p.taggedCell, p
	}
	return r.nextInRing(), nil // it was written before
}

// message sets m to the message of the first cell. The queue is locked.
func (r *taggedRing) message(m *ringMessage, c *taggedCell, p *taggedPairCell) {
	m.From, m.Tag, m.Size, m.Type, m.context, m.send = r.from, c.tag, int(c.size), c.kind, c.context, nil
	if c.size == announced {
		m.send = r.sends[r.read.Load()%ringDepth]
		m.Size, m.data = m.send.Size, m.send.Data
	} else {
		m.data = r.contents(c, p)
	}
}

// size returns the size of the first cell's message.
func (r *taggedRing) size(c *taggedCell) int {
	if c.size == announced {
		return r.sends[r.read.Load()%ringDepth].Size
	}
	return int(c.size)
}

// contents returns the bytes of the first cell's message, which does not go by rendezvous.
func (r *taggedRing) contents(c *taggedCell, p *taggedPairCell) []byte {
	if p != nil {
		return p.bytes(int(c.size))
	}
	if c.size > taggedInlineMax {
		return r.bytes[r.read.Load()%ringDepth][:c.size]
	}
	return c.data[:c.size]
}

// take frees the cell of the oldest message, which is p if that is a pair cell. The queue is locked.
func (r *taggedRing) take(p *taggedPairCell) {
	if p != nil {
		r.pair.take(p)
	} else {
		r.read.Store(r.read.Load() + 1)
	}
}

// rings are those to one rank.
type rings struct {
	cached   [8]atomic.Pointer[taggedRing] // some of them, by sender modulo 8
	bySender map[int]*taggedRing           // all; under the queue's lock
	polled   atomic.Pointer[[]*taggedRing] // those with cells; replaced under the queue's lock
}

// lookup returns the ring of a sender if it is cached, or nil.
func (x *rings) lookup(sender int) *taggedRing {
	if r := x.cached[sender%len(x.cached)].Load(); r != nil && r.from == sender {
		return r
	}
	return nil
}

// ring returns the ring of a sender, and makes it at first use. The queue is locked.
func (q *taggedQueue) ring(sender int) *taggedRing {
	x := &q.rings
	if r := x.lookup(sender); r != nil {
		return r
	}
	r := x.bySender[sender]
	if r == nil {
		r = &taggedRing{from: sender, pair: q.endpoint.pairOf(sender)}
		if x.bySender == nil {
			x.bySender = make(map[int]*taggedRing)
		}
		x.bySender[sender] = r
		if polled := x.list(); len(polled) < ringsMax {
			r.cells = new(taggedCells)
			polled = append(polled, r)
			x.polled.Store(&polled)
		}
	}
	x.cached[sender%len(x.cached)].Store(r)
	return r
}

// ringOf is ring for a caller that has not locked the queue.
func (q *taggedQueue) ringOf(sender int) *taggedRing {
	if r := q.rings.lookup(sender); r != nil {
		return r
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.ring(sender)
}

// list returns the rings with cells.
func (x *rings) list() []*taggedRing {
	if polled := x.polled.Load(); polled != nil {
		return *polled
	}
	return nil
}

// arrived reports whether a message of a sender, or of any, is in a ring.
func (q *taggedQueue) arrived(from int) bool {
	if from != transport.Any {
		return q.ringOf(from).ready()
	}
	return slices.ContainsFunc(q.rings.list(), (*taggedRing).ready)
}

// send writes a message, which is not longer than ringMax, into the ring of its sender. If calls of the receiver sleep,
// the sender reads the ring for them.
func (q *taggedQueue) send(from int, m transport.Match, kind string, data []byte) bool {
	if !q.ringOf(from).write(m.Context, m.Tag, kind, data) {
		return false
	}
	if q.sleepers() {
		q.poll(from)
	}
	return true
}

// announce is send for a message that goes by rendezvous.
func (q *taggedQueue) announce(m *match.Tagged) bool {
	from := m.From // once it is written, m may be received, and be another message
	if !q.ringOf(from).announce(m) {
		return false
	}
	if q.sleepers() {
		q.poll(from)
	}
	return true
}

// drain moves the messages of a sender, or of all, from the rings to the receives that take
// them, or to the queue. The queue is locked, and is unlocked while a rendezvous message is
// copied; in the end the ring of that sender is empty.
func (q *taggedQueue) drain(from int) {
	if from != transport.Any {
		q.drainRing(q.ring(from))
		return
	}
	for _, r := range q.rings.list() {
		q.drainRing(r)
	}
}

// poll is drain for a caller that has not locked the queue.
func (q *taggedQueue) poll(from int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.drain(from)
}

func (q *taggedQueue) drainRing(r *taggedRing) {
	for {
		c, pair := r.first()
		if c == nil {
			return
		}
		var m ringMessage
		r.message(&m, c, pair)
		p := q.take(&m.MessageInfo, m.context)
		switch {
		case m.send != nil && p != nil:
			r.take(pair)
			q.mu.Unlock()
			q.deliver(p, m.send)
			q.mu.Lock()
			continue
		case m.send != nil && q.endpoint.drops(m.context):
			r.take(pair)
			q.mu.Unlock()
			q.endpoint.job.refuse(m.send)
			q.mu.Lock()
			continue
		case m.send != nil:
			q.enqueue(m.send)
		case p != nil:
			copy(p.data, m.data)
			q.finish(p, &m.MessageInfo, nil)
			r.refund(m.Size)
		default:
			q.add(&m.MessageInfo, m.context, m.data)
		}
		r.take(pair)
	}
}
