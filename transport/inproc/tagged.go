package inproc

import (
	"slices"
	"sync"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
)

// A taggedQueue holds the tagged messages to one rank that have not been
// received. Calls that wait are not queued, so every message passes through it.
type taggedQueue struct {
	mu       sync.Mutex
	messages match.TaggedQueue
	credits  map[int]*match.Credits // by sender
	changed  chan struct{}          // closed at the next change; nil while no call waits
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
	q.messages.Add(m)
	q.notify()
	return true
}

// enqueueRendezvous adds a message that refers to its sender's memory.
func (q *taggedQueue) enqueueRendezvous(m *match.Tagged, done func(error)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	m.Rendezvous, m.Done = true, done
	q.messages.Add(m)
	q.notify()
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

// changes returns a channel that is closed at the next change.
func (q *taggedQueue) changes() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.changed == nil {
		q.changed = make(chan struct{})
	}
	return q.changed
}

// notify wakes the calls that wait for a change. The queue is locked.
func (q *taggedQueue) notify() {
	if q.changed != nil {
		close(q.changed)
		q.changed = nil
	}
}

// wake locks the queue and notifies the calls that wait.
func (q *taggedQueue) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.notify()
}
