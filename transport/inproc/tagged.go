package inproc

import (
	"slices"
	"sync"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
)

// A taggedQueue holds the tagged messages to one rank that have not been received,
// and the calls of the rank that wait.
type taggedQueue struct {
	mu       sync.Mutex
	messages match.TaggedQueue
	credits  map[int]*match.Credits // by sender
	waiters  []*taggedWaiter
	waits    uint64 // how many waiters there were
}

// A taggedWaiter is a call that waits: for a message that matches its pattern, or,
// where sends is set, until the message that it sends is received. Then the pattern's
// From is the receiver.
type taggedWaiter struct {
	pattern *match.Pattern
	sends   bool
	changed chan struct{} // of capacity 1
	index   int           // in taggedQueue.waiters
	number  uint64        // of those that the queue had
}

func newTaggedWaiter(p *match.Pattern, sends bool) *taggedWaiter {
	return &taggedWaiter{pattern: p, sends: sends, changed: make(chan struct{}, 1)}
}

// notify has the call look again.
func (w *taggedWaiter) notify() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// enqueueEager adds a message with a copy of its bytes, if it is short and its
// sender has the credits.
func (q *taggedQueue) enqueueEager(m *match.Tagged) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if m.Size > match.EagerMax || !q.creditsOf(m.From).Use(m.Size) {
		return false
	}
	m.Data = slices.Clone(m.Data)
	q.enqueue(m)
	return true
}

// enqueueRendezvous adds a message that refers to its sender's memory.
func (q *taggedQueue) enqueueRendezvous(m *match.Tagged, done func(error)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	m.Rendezvous, m.Done = true, done
	q.enqueue(m)
}

// enqueue adds a message and wakes every call that waits for such a one: a probe
// leaves the message to the others, and a receive may be canceled. The queue is
// locked.
func (q *taggedQueue) enqueue(m *match.Tagged) {
	q.messages.Add(m)
	for _, w := range q.waiters {
		if !w.sends && w.pattern.Matches(m) {
			w.notify()
		}
	}
}

// cancel removes a rendezvous message, and reports whether it was still queued.
func (q *taggedQueue) cancel(m *match.Tagged) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.messages.Remove(m)
}

// find returns the first message that matches, or nil, and leaves it queued.
func (q *taggedQueue) find(p *match.Pattern) *match.Tagged {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.messages.Find(p)
}

// dequeue removes the first message that matches and returns it, or nil if there is
// none. If the message is of another type than kind or longer than size, dequeue
// leaves it queued and returns it with an error.
func (q *taggedQueue) dequeue(p *match.Pattern, kind string, size int) (*match.Tagged, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	m := q.messages.Find(p)
	switch {
	case m == nil:
		return nil, nil
	case m.Type != kind:
		return m, &transport.TypeError{Peer: m.From, Got: m.Type, Want: kind}
	case m.Size > size:
		return m, &transport.SizeError{Peer: m.From, Got: m.Size, Want: size}
	}
	q.messages.Remove(m)
	if !m.Rendezvous {
		q.creditsOf(m.From).Refund(m.Size)
	}
	return m, nil
}

// release drops the eager messages of a context. A rendezvous message stays: its
// sender waits.
func (q *taggedQueue) release(context uint32) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range q.messages.Release(context) {
		q.creditsOf(m.From).Refund(m.Size)
	}
}

// bytes returns what the messages cost.
func (q *taggedQueue) bytes() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.messages.Held()
}

// creditsOf returns the credits of a sender. The queue is locked.
func (q *taggedQueue) creditsOf(sender int) *match.Credits {
	c := q.credits[sender]
	if c == nil {
		if q.credits == nil {
			q.credits = make(map[int]*match.Credits)
		}
		c = new(match.Credits)
		q.credits[sender] = c
	}
	return c
}

// addWaiter adds a call that waits.
func (q *taggedQueue) addWaiter(w *taggedWaiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waits++
	w.index, w.number = len(q.waiters), q.waits
	q.waiters = append(q.waiters, w)
}

// removeWaiter removes a call that does not wait any more.
func (q *taggedQueue) removeWaiter(w *taggedWaiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := len(q.waiters) - 1
	last := q.waiters[n]
	q.waiters[w.index], last.index = last, w.index
	q.waiters[n] = nil
	q.waiters = q.waiters[:n]
}

// wakeAll has every call that waits look again.
func (q *taggedQueue) wakeAll() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, w := range q.waiters {
		w.notify()
	}
}

// stalls returns the calls that wait.
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
