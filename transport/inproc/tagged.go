package inproc

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
)

// A taggedQueue holds the tagged messages to one rank that have not been received, the
// requests of the rank that are in progress, and its calls that sleep. The lock guards
// the requests as well: one is finished under the lock of its own rank.
type taggedQueue struct {
	mu       sync.Mutex
	posted   []*message // receives that wait for a message, in the order of their starts
	messages match.TaggedQueue
	sends    []*message // rendezvous messages of this rank
	spare    []*message
	waiters  []*taggedWaiter
	started  uint64 // requests, and waiters without one

	rings    rings
	_        [cacheLine]byte
	sleeping atomic.Int32 // the number of waiters, for senders
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
	sent     match.Tagged // of a send, in its receiver's queue
	received func(error)  // ends a send; kept for the next one
}

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
	m.r, m.ctx, m.pattern, m.kind, m.data, m.number = r, ctx, p, kind, data, q.started
	r.State = m
	return m
}

// finish ends a request of this rank, and wakes the calls that wait for it. The queue is
// locked, and the message is not posted.
func (q *taggedQueue) finish(m *message, info transport.MessageInfo, err error) {
	r := m.r
	if m.sends {
		q.sends = slices.DeleteFunc(q.sends, func(other *message) bool { return other == m })
	}
	*m = message{received: m.received}
	if len(q.spare) < spareMax {
		q.spare = append(q.spare, m)
	}
	r.Finish(info, err)
	for _, w := range q.waiters {
		if w.request == r {
			w.notify()
		}
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
		q.finish(m, *info, &transport.TypeError{Peer: info.From, Got: info.Type, Want: m.kind})
	case info.Size > len(m.data):
		q.finish(m, *info, &transport.SizeError{Peer: info.From, Got: info.Size, Want: len(m.data)})
	default:
		return true
	}
	return false
}

// source returns the rank that a request receives from, or sends to.
func (q *taggedQueue) source(r *transport.Request) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if m, ok := r.State.(*message); ok {
		return m.pattern.From
	}
	return transport.Any
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

// enqueueEager adds a message with a copy of its bytes, if it is short and its
// sender has the credits. The queue is locked.
func (q *taggedQueue) enqueueEager(info *transport.MessageInfo, context uint32, data []byte) bool {
	if info.Size > match.EagerMax || !q.ring(info.From).use(info.Size) {
		return false
	}
	q.add(info, context, data)
	return true
}

// add adds a message with a copy of its bytes.
func (q *taggedQueue) add(info *transport.MessageInfo, context uint32, data []byte) {
	m := q.messages.New(info.Size)
	m.MessageInfo, m.Context = *info, context
	copy(m.Data, data)
	q.enqueue(m)
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

// cancel removes a rendezvous message, and reports whether it was still queued. Number
// tells it from a later one in the same memory.
func (q *taggedQueue) cancel(m *match.Tagged, number uint32) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return m.Number == number && q.messages.Remove(m)
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

// wakeAll has every call that sleeps look again.
func (q *taggedQueue) wakeAll() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, w := range q.waiters {
		w.notify()
	}
}

// stalls returns the calls that sleep.
func (q *taggedQueue) stalls() (stalls []transport.Stall) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, w := range q.waiters {
		s := transport.Stall{Signature: transport.Signature{Context: w.pattern.Context}, Tag: w.pattern.Tag, Wait: w.number}
		if w.pattern.From != transport.Any {
			s.Peers = []int{w.pattern.From}
		}
		stalls = append(stalls, s)
	}
	return stalls
}
