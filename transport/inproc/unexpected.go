package inproc

import (
	"slices"
	"sync"

	"github.com/chorale-go/chorale/transport"
)

const (
	// eagerMax is the size in bytes of the longest eager tagged message.
	eagerMax = 64 << 10
	// eagerTotal is how many bytes of one sender's eager messages a queue holds.
	// Above it, the sender's messages take the rendezvous protocol.
	eagerTotal = 1 << 20
)

// A taggedMessage is eager or rendezvous. An eager message holds a copy of the
// sender's bytes. A rendezvous message holds the sender's memory, and the sender
// waits until it has been received.
type taggedMessage struct {
	transport.MessageInfo
	context  uint32
	data     []byte
	received chan struct{} // of a rendezvous message: closed when it has been received
}

func (m *taggedMessage) matches(from int, match transport.Match) bool {
	return m.context == match.Context &&
		(from == transport.Any || m.From == from) &&
		(match.Tag == transport.Any || m.Tag == match.Tag)
}

// An unexpectedQueue holds the tagged messages to one rank that have not been
// received. Calls that wait are not queued, so every message passes through it.
type unexpectedQueue struct {
	mu       sync.Mutex
	messages []*taggedMessage // in order of arrival
	eager    map[int]int      // bytes of eager messages, by sender
	changed  chan struct{}    // closed at the next change; nil while no call waits
}

// enqueue adds a message, which it makes eager or rendezvous.
func (q *unexpectedQueue) enqueue(m *taggedMessage) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if m.Size <= eagerMax && q.eager[m.From]+m.Size <= eagerTotal {
		if q.eager == nil {
			q.eager = make(map[int]int)
		}
		q.eager[m.From] += m.Size
		m.data = append([]byte(nil), m.data...)
	} else {
		m.received = make(chan struct{})
	}
	q.messages = append(q.messages, m)
	q.notify()
}

// cancel removes a rendezvous message, and reports whether it was still queued.
func (q *unexpectedQueue) cancel(m *taggedMessage) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.messages, m)
	if i < 0 {
		return false
	}
	q.messages = slices.Delete(q.messages, i, i+1)
	return true
}

// match returns the first message that matches, or nil. If inspect says so, the
// message leaves the queue.
func (q *unexpectedQueue) match(from int, match transport.Match, inspect func(*taggedMessage) (dequeue bool, err error)) (*taggedMessage, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.IndexFunc(q.messages, func(m *taggedMessage) bool { return m.matches(from, match) })
	if i < 0 {
		return nil, nil
	}
	m := q.messages[i]
	dequeue, err := inspect(m)
	if dequeue {
		q.messages = slices.Delete(q.messages, i, i+1)
		if m.received == nil {
			q.eager[m.From] -= m.Size
		}
	}
	return m, err
}

// changes returns a channel that is closed at the next change.
func (q *unexpectedQueue) changes() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.changed == nil {
		q.changed = make(chan struct{})
	}
	return q.changed
}

// notify wakes the calls that wait for a change. The queue is locked.
func (q *unexpectedQueue) notify() {
	if q.changed != nil {
		close(q.changed)
		q.changed = nil
	}
}

// wake locks the queue and notifies the calls that wait.
func (q *unexpectedQueue) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.notify()
}
