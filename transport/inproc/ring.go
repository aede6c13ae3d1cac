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
	_     [cacheLine - 16]byte

	mu     sync.Mutex               // guards the fields up to the padding
	number uint32                   // messages written
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
	number  atomic.Uint32 // of the message
	context uint32
	tag     int
	size    int // of a rendezvous message, its complement
	kind    string
	data    [taggedInlineMax]byte
}

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
	if !r.hasRoom() || !r.charge(len(data)) {
		return false
	}
	i := r.number % ringDepth
	c := r.cells.at(i)
	c.context, c.tag, c.size, c.kind = context, tag, len(data), kind
	if len(data) <= taggedInlineMax {
		copy(c.data[:], data)
	} else {
		if r.bytes[i] == nil {
			r.bytes[i] = make([]byte, ringMax)
		}
		copy(r.bytes[i], data)
	}
	r.number++
	c.publish(r.number)
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
	c.context, c.tag, c.size, c.kind = m.Context, m.Tag, ^m.Size, m.Type
	r.sends[i] = m
	r.number++
	c.publish(r.number)
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
	read := r.read.Load()
	return r.cells.at(read % ringDepth).holds(read + 1)
}

// A ringMessage is one in a ring.
type ringMessage struct {
	transport.MessageInfo
	context uint32
	data    []byte
	send    *match.Tagged // nil unless it goes by rendezvous
}

// first returns the cell of the oldest message, or nil if there is none. The queue is locked.
func (r *taggedRing) first() *taggedCell {
	if !r.ready() {
		return nil
	}
	return r.cells.at(r.read.Load() % ringDepth)
}

// message returns the message of the first cell. The queue is locked.
func (r *taggedRing) message(c *taggedCell) (m ringMessage) {
	m.MessageInfo = transport.MessageInfo{From: r.from, Tag: c.tag, Size: c.size, Type: c.kind}
	m.context = c.context
	if c.size < 0 {
		m.Size, m.send = ^c.size, r.sends[r.read.Load()%ringDepth]
		m.data = m.send.Data
	} else {
		m.data = r.contents(c)
	}
	return m
}

// contents returns the bytes of the first cell's message, which does not go by rendezvous.
func (r *taggedRing) contents(c *taggedCell) []byte {
	if c.size > taggedInlineMax {
		return r.bytes[r.read.Load()%ringDepth][:c.size]
	}
	return c.data[:c.size]
}

// take frees the cell of the oldest message. The queue is locked.
func (r *taggedRing) take() { r.read.Store(r.read.Load() + 1) }

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
		r = &taggedRing{from: sender}
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

// send writes a short message into the ring of its sender. If calls of the receiver sleep,
// the sender reads the ring for them.
func (q *taggedQueue) send(from int, m transport.Match, kind string, data []byte) bool {
	if len(data) > ringMax {
		return false
	}
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
		c := r.first()
		if c == nil {
			return
		}
		m := r.message(c)
		p := q.take(&m.MessageInfo, m.context)
		switch {
		case m.send != nil && p != nil:
			r.take()
			q.mu.Unlock()
			q.deliver(p, m.send)
			q.mu.Lock()
			continue
		case m.send != nil && q.endpoint.drops(m.context):
			r.take()
			q.mu.Unlock()
			q.endpoint.job.refuse(m.send)
			q.mu.Lock()
			continue
		case m.send != nil:
			q.enqueue(m.send)
		case p != nil:
			copy(p.data, m.data)
			q.finish(p, m.MessageInfo, nil)
			r.refund(m.Size)
		default:
			q.add(&m.MessageInfo, m.context, m.data)
		}
		r.take()
	}
}

// recvFast receives a message that is the next one in the ring of its sender, or soon will
// be, while no other message is queued and no receive is posted.
func (e *Endpoint) recvFast(from int, m transport.Match, kind string, into []byte) (info transport.MessageInfo, ok bool) {
	if from < 0 || from >= len(e.job.endpoints) {
		return info, false
	}
	q := &e.tagged
	r := q.ringOf(from)
	for polls := 0; !r.ready(); polls++ {
		if polls == firstYield || e.job.spinning.resume.Load() != 0 {
			return info, false
		}
	}
	q.mu.Lock()
	c := r.first()
	switch {
	case c == nil, len(q.posted) > 0, q.messages.Held() > 0, e.knownErr(m.Context) != nil,
		c.context != m.Context, c.tag != m.Tag && m.Tag != transport.Any, c.kind != kind, max(c.size, ^c.size) > len(into):
		q.mu.Unlock()
		return info, false
	case c.size < 0:
		message := r.message(c)
		r.take()
		q.mu.Unlock()
		transport.Copy(into[:message.Size], message.data, false)
		message.send.Done(nil)
		return message.MessageInfo, true
	}
	info = transport.MessageInfo{From: from, Tag: c.tag, Size: c.size, Type: kind}
	copy(into, r.contents(c))
	r.take()
	r.refund(info.Size)
	q.mu.Unlock()
	return info, true
}
