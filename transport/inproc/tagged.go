package inproc

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
)

// A taggedQueue holds the tagged messages to one rank that have not been received, the
// requests of the rank that are in progress, and its calls that sleep. The lock guards
// the requests as well: one is finished under the lock of its own rank.
//
// What senders read comes first: a method that is called with a pointer to the queue reads the
// first word, to see that the pointer is not nil.
type taggedQueue struct {
	endpoint *Endpoint
	rings    rings
	sleeping atomic.Int32 // the number of waiters
	_        [cacheLine]byte

	mu       sync.Mutex // guards the fields below
	posted   []*message // receives that wait for a message, in the order of their starts
	messages match.TaggedQueue
	sends    []*message // rendezvous messages of this rank
	spare    []*message
	waiters  []*taggedWaiter
	started  uint64 // requests, and waiters without one
	_        [cacheLine]byte
}

// A message is a request in progress: a receive, or a send by rendezvous.
type message struct {
	r       *transport.Request
	ctx     context.Context
	pattern match.Pattern // of a send, From is the receiver
	kind    string
	data    []byte
	number  uint64

	sends    bool
	index    int           // of a send, in taggedQueue.sends
	sent     *match.Tagged // of a send, in its receiver's queue; kept for the next one
	received func(error)   // ends a send; kept as well
	pinned   int           // calls that look at sent without the lock, so that it is not for another message
}

// eagerMin is the length of the longest message in bytes that its sender copies at once. Of a
// longer one, up to match.EagerMax, it does so when it waits for the send, and the receiver has
// not read it soon.
const eagerMin = 8 << 10

// spareMax is how many messages are kept for later ones.
const spareMax = 64

// newMessage returns the message of a request. The queue is locked.
func (q *taggedQueue) newMessage(ctx context.Context, r *transport.Request, p match.Pattern, kind string, data []byte) *message {
	var m *message
	if n := len(q.spare); n > 0 {
		m, q.spare = q.spare[n-1], q.spare[:n-1]
	} else {
		m = new(message)
	}
	q.started++
	m.r, m.ctx, m.kind, m.data, m.number = r, ctx, kind, data, q.started
	m.pattern.From, m.pattern.Context, m.pattern.Tag = p.From, p.Context, p.Tag
	r.State = m
	return m
}

// finish ends a request of this rank, and wakes the calls that wait for it. Info is nil unless
// the request is a receive that has found its message. The queue is locked, and the message is
// not posted.
func (q *taggedQueue) finish(m *message, info *transport.MessageInfo, err error) {
	r := m.r
	if info != nil { // field by field: what copies wide waits until what was written in parts has left the processor
		i := &r.Info
		i.From, i.Tag, i.Size, i.Type = info.From, info.Tag, info.Size, info.Type
	}
	if m.sends {
		n := len(q.sends) - 1
		last := q.sends[n]
		q.sends[m.index], last.index = last, m.index
		q.sends[n] = nil
		q.sends = q.sends[:n]
	}
	m.r, m.ctx, m.data, m.number, m.sends = nil, nil, nil, 0, false
	q.keep(m)
	r.End(err)
	for _, w := range q.waiters {
		if w.request == r {
			w.notify()
		}
	}
}

// keep keeps a message that is done for later ones, unless a call looks at it. The queue is
// locked.
func (q *taggedQueue) keep(m *message) {
	if m.pinned == 0 && len(q.spare) < spareMax {
		q.spare = append(q.spare, m)
	}
}

// unpin notes that a call does not look at a message any more. The queue is locked.
func (q *taggedQueue) unpin(m *message) {
	if m.pinned--; m.number == 0 {
		q.keep(m)
	}
}

// take removes the first posted receive that takes a message, and returns it, or nil.
// Receives that match and cannot take it fail. The queue is locked.
func (q *taggedQueue) take(info *transport.MessageInfo, context uint32) *message {
	for i := 0; i < len(q.posted); {
		m := q.posted[i]
		if !m.pattern.Takes(info, context) {
			i++
			continue
		}
		n := i + copy(q.posted[i:], q.posted[i+1:])
		q.posted[n] = nil
		q.posted = q.posted[:n]
		if q.fits(m, info) {
			return m
		}
	}
	return nil
}

// fits reports whether a receive, which is not posted, can take a message. If not, the
// receive fails. The queue is locked.
func (q *taggedQueue) fits(m *message, info *transport.MessageInfo) bool {
	switch {
	case info.Type != m.kind:
		q.finish(m, info, &transport.TypeError{Peer: info.From, Got: info.Type, Want: m.kind})
	case info.Size > len(m.data):
		q.finish(m, info, &transport.SizeError{Peer: info.From, Got: info.Size, Want: len(m.data)})
	default:
		return true
	}
	return false
}

// message returns the message of a request, and the rank that it comes from or goes to, unless
// the request is done.
func (q *taggedQueue) message(r *transport.Request) (m inProgress, peer int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if m, ok := r.State.(*message); ok {
		return inProgress{m, m.number}, m.pattern.From
	}
	return m, transport.Any
}

// unpost removes a receive, and reports whether it was posted. The queue is locked.
func (q *taggedQueue) unpost(m *message) bool {
	i := slices.Index(q.posted, m)
	if i >= 0 {
		q.posted = slices.Delete(q.posted, i, i+1)
	}
	return i >= 0
}

// requests are for calls that wait.
var requests = sync.Pool{New: func() any { return new(transport.Request) }}

// A taggedWaiter is a call that sleeps: until a request is done, or, without one, until
// a message is queued that matches the pattern.
type taggedWaiter struct {
	pattern match.Pattern
	request *transport.Request
	message string        // what is done with the message: "send", "recv" or "probe"
	changed chan struct{} // of capacity 1
	index   int           // in taggedQueue.waiters
	number  uint64        // tells waits apart
}

// taggedWaiters are for later calls.
var taggedWaiters = sync.Pool{New: func() any { return &taggedWaiter{changed: make(chan struct{}, 1)} }}

// notify has the call look again.
func (w *taggedWaiter) notify() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// deliver copies a rendezvous message to a receive of this rank. Neither is queued, so
// that neither can end otherwise. The queue is not locked.
func (q *taggedQueue) deliver(p *message, m *match.Tagged) {
	transport.Copy(p.data[:m.Size], m.Data, false)
	q.mu.Lock()
	q.finish(p, &m.MessageInfo, nil)
	q.mu.Unlock()
	m.Done(nil)
}

// sendWithoutRing puts a copy of a message where it would go from the ring, and reports whether
// its sender has the credits.
func (q *taggedQueue) sendWithoutRing(info *transport.MessageInfo, context uint32, data []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.drain(info.From)
	if p := q.take(info, context); p != nil {
		copy(p.data, data)
		q.finish(p, info, nil)
		return true
	}
	return q.enqueueEager(info, context, data)
}

// enqueueEager adds a message with a copy of its bytes, if its sender has the credits. The
// queue is locked.
func (q *taggedQueue) enqueueEager(info *transport.MessageInfo, context uint32, data []byte) bool {
	if !q.ring(info.From).use(info.Size) {
		return false
	}
	q.add(info, context, data)
	return true
}

// add adds a message with a copy of its bytes, for which its sender has the credits, or drops
// it if its communicator is revoked. The queue is locked.
func (q *taggedQueue) add(info *transport.MessageInfo, context uint32, data []byte) {
	if q.endpoint.drops(context) {
		q.ring(info.From).refund(info.Size)
		return
	}
	m := q.messages.New(info.Size)
	m.MessageInfo, m.Context = *info, context
	copy(m.Data, data)
	q.enqueue(m)
}

// makeEager delivers what a sender has announced, and copies one of its rendezvous messages
// into the queue if that still waits, is short enough, and the sender has the credits. It
// reports whether it did.
func (q *taggedQueue) makeEager(from int, m *match.Tagged) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.drain(from)
	if m.Size > match.EagerMax || q.endpoint.drops(m.Context) || !q.ring(from).use(m.Size) {
		return false
	}
	if !q.messages.MakeEager(m) {
		q.ring(from).refund(m.Size)
		return false
	}
	return true
}

// enqueue adds a message and wakes every probe for such a one. The queue is locked.
func (q *taggedQueue) enqueue(m *match.Tagged) {
	q.messages.Add(m)
	for _, w := range q.waiters {
		if w.request == nil && w.pattern.Matches(m) {
			w.notify()
		}
	}
}

// cancel removes a rendezvous message of a sender, and reports whether it was still queued.
func (q *taggedQueue) cancel(from int, m *match.Tagged) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.drain(from)
	return m.Rendezvous && q.messages.Remove(m)
}

// find returns the first message that matches, and leaves it queued.
func (q *taggedQueue) find(p *match.Pattern) (info transport.MessageInfo, found bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.drain(p.From)
	if m := q.messages.Find(p); m != nil {
		return m.MessageInfo, true
	}
	return info, false
}

// release drops the eager messages of a context. A rendezvous message stays: its
// sender waits.
func (q *taggedQueue) release(context uint32) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.drain(transport.Any)
	for _, m := range q.messages.Release(context) {
		q.ring(m.From).refund(m.Size)
	}
}

// bytes returns what the messages cost.
func (q *taggedQueue) bytes() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.drain(transport.Any)
	return q.messages.Held()
}

// addWaiter adds a call that sleeps.
func (q *taggedQueue) addWaiter(w *taggedWaiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.request == nil {
		q.started++
		w.number = q.started
	}
	q.sleeping.Add(1)
	w.index = len(q.waiters)
	q.waiters = append(q.waiters, w)
}

// removeWaiter removes a call that does not sleep any more.
func (q *taggedQueue) removeWaiter(w *taggedWaiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sleeping.Add(-1)
	n := len(q.waiters) - 1
	last := q.waiters[n]
	q.waiters[w.index], last.index = last, w.index
	q.waiters[n] = nil
	q.waiters = q.waiters[:n]
	select {
	case <-w.changed:
	default:
	}
	w.request = nil
	taggedWaiters.Put(w)
}

// revoke ends the receives in the contexts of a communicator that is revoked, drops the
// messages there, and has every call that sleeps look again.
func (q *taggedQueue) revoke(communicator uint32, why error) {
	dropped := func(context uint32) bool { return revokes(communicator, context) }
	q.mu.Lock()
	for _, m := range slices.Clone(q.posted) {
		if dropped(m.pattern.Context) {
			q.unpost(m)
			q.finish(m, nil, why)
		}
	}
	removed := q.messages.Revoke(dropped)
	for _, m := range removed {
		if !m.Rendezvous {
			q.ring(m.From).refund(m.Size)
		}
	}
	q.notifyAll()
	q.mu.Unlock()
	for _, m := range removed {
		if m.Rendezvous {
			q.endpoint.job.refuse(m)
		}
	}
}

// refuse ends a rendezvous message, which is not queued any more, with the error for which
// its sender's communicator is revoked. No queue is locked.
func (j *Job) refuse(m *match.Tagged) { m.Done(j.endpoints[m.From].knownErr(m.Context)) }

// wakeAll has every call that sleeps look again.
func (q *taggedQueue) wakeAll() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.notifyAll()
}

func (q *taggedQueue) notifyAll() {
	for _, w := range q.waiters {
		w.notify()
	}
}

// stalls returns the calls that sleep.
func (q *taggedQueue) stalls() (stalls []transport.Stall) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, w := range q.waiters {
		s := transport.Stall{
			Signature: transport.Signature{Context: w.pattern.Context}, Message: w.message,
			Tag: w.pattern.Tag, Wait: w.number, Operation: uintptr(unsafe.Pointer(w)), // see taggedWaiter.wait
		}
		if w.pattern.From != transport.Any {
			s.Peers = []int{w.pattern.From}
		}
		stalls = append(stalls, s)
	}
	return stalls
}
