package match

import (
	"slices"

	"github.com/chorale-go/chorale/transport"
)

// A Pattern is what a receive of a tagged message asks for.
type Pattern struct {
	From int // transport.Any for any rank
	transport.Match
}

// Matches reports whether a message is one that the pattern asks for.
func (p *Pattern) Matches(m *Tagged) bool { return p.Takes(&m.MessageInfo, m.Context) }

// Takes reports whether the pattern asks for a message of a context.
func (p *Pattern) Takes(m *transport.MessageInfo, context uint32) bool {
	return context == p.Context &&
		(p.From == transport.Any || m.From == p.From) &&
		(p.Tag == transport.Any || m.Tag == p.Tag)
}

// A Tagged is a tagged message to this rank. An eager message is here with its
// contents. A rendezvous message is announced: its sender keeps the contents until
// they are received.
type Tagged struct {
	transport.MessageInfo
	Context    uint32
	Rendezvous bool
	Number     uint32      // of a rendezvous message, among those of its sender
	Data       []byte      // the contents; of a rendezvous message, where they go
	Got        int         // bytes of Data that have arrived
	Done       func(error) // of a rendezvous message: ends the wait of its receiver, or of this rank as its sender
	Offer      Offer       // of a rendezvous message

	queued  link     // in the queue's messages
	indexed *[4]link // in the lists of its index; nil if it has none
}

// An Offer says where a rendezvous message lies, so that its receiver takes it from there
// without asking for it. The zero Offer is none.
type Offer struct {
	ID      uint64 // 0: none; two ranks decide by it whether the message was taken, or withdrawn
	Address uint64 // in the memory of the sender, or in what it shares with others
	Shared  bool
	Take    func(*Tagged) // takes the message, and ends the wait for it
}

// sparesMost is how many messages a queue keeps for their memory.
const sparesMost = 8

// A TaggedQueue holds the tagged messages to one rank that have not been received.
type TaggedQueue struct {
	messages  list
	held      int         // what messages cost, in bytes
	announced []int       // rendezvous messages among them, by sender
	index     taggedIndex // of messages; nil until a search has been long
	requested []*Tagged   // rendezvous messages whose contents were asked for
	spare     []*Tagged   // eager messages that were received, for their memory
}

// New returns an eager message of some size. Its contents are for the caller to
// write.
func (q *TaggedQueue) New(size int) *Tagged {
	var m *Tagged
	if n := len(q.spare); n > 0 {
		m, q.spare = q.spare[n-1], q.spare[:n-1]
		*m = Tagged{Data: m.Data}
	} else {
		m = new(Tagged)
	}
	if cap(m.Data) < size {
		m.Data = make([]byte, size)
	}
	m.Data = m.Data[:size]
	return m
}

// Add adds a message that has arrived or was announced.
func (q *TaggedQueue) Add(m *Tagged) {
	q.messages.add(&m.queued, m)
	q.held += m.cost()
	if m.Rendezvous {
		q.countAnnounced(m.From, 1)
	}
	if q.index != nil {
		q.index.add(m)
	}
}

func (q *TaggedQueue) countAnnounced(from, n int) {
	if missing := from + 1 - len(q.announced); missing > 0 {
		q.announced = append(q.announced, make([]int, missing)...)
	}
	q.announced[from] += n
}

// Overrun reports whether a rank has announced more messages than it does, of those that
// are in the queue: AnnouncedMax, and as many copies of eager messages.
func (q *TaggedQueue) Overrun(from int) bool {
	return from < len(q.announced) && q.announced[from] > 2*AnnouncedMax
}

// FirstUnreceived returns the first message that a program has not received, or nil. In
// resilient contexts, a rank may leave messages of lost ones behind.
func (q *TaggedQueue) FirstUnreceived() *Tagged {
	for l := q.messages.first; l != nil; l = l.next {
		if !transport.Resilient(l.message.Context) {
			return l.message
		}
	}
	return nil
}

// Find returns the first message that matches, or nil.
func (q *TaggedQueue) Find(p *Pattern) *Tagged {
	if q.index == nil {
		n := 0
		for l := q.messages.first; l != nil; l = l.next {
			if n++; n > searchMax {
				q.buildIndex()
				return q.index.first(p)
			}
			if p.Matches(l.message) {
				return l.message
			}
		}
		return nil
	}
	return q.index.first(p)
}

func (q *TaggedQueue) buildIndex() {
	q.index = make(taggedIndex)
	for l := q.messages.first; l != nil; l = l.next {
		q.index.add(l.message)
	}
}

// Remove removes a message, and reports whether it was there.
func (q *TaggedQueue) Remove(m *Tagged) bool {
	if m.queued.list != &q.messages {
		return false
	}
	m.queued.remove()
	q.held -= m.cost()
	if m.Rendezvous {
		q.countAnnounced(m.From, -1)
	}
	switch {
	case q.messages.first == nil:
		q.index, m.indexed = nil, nil
	case m.indexed != nil:
		q.index.remove(m)
	}
	return true
}

// MakeEager gives a rendezvous message, which is in the queue, its contents, and reports
// whether it was there. Its sender is done.
func (q *TaggedQueue) MakeEager(m *Tagged) bool {
	if m.queued.list != &q.messages || !m.Rendezvous {
		return false
	}
	q.held -= m.cost()
	q.countAnnounced(m.From, -1)
	m.Rendezvous, m.Number, m.Data, m.Done = false, 0, slices.Clone(m.Data), nil
	q.held += m.cost()
	return true
}

// Held returns the bytes of the messages that have arrived, with
// [transport.MessageCost] for each, also for one that is announced.
func (q *TaggedQueue) Held() int { return q.held }

func (m *Tagged) cost() int {
	if m.Rendezvous {
		return transport.MessageCost
	}
	return m.Size + transport.MessageCost
}

// removeAll removes the messages that drop is true for.
func (q *TaggedQueue) removeAll(drop func(m *Tagged) bool) {
	for l := q.messages.first; l != nil; {
		m := l.message
		l = l.next
		if drop(m) {
			q.Remove(m)
		}
	}
}

// Recycle keeps the memory of an eager message that was received.
func (q *TaggedQueue) Recycle(m *Tagged) {
	if len(q.spare) < sparesMost {
		q.spare = append(q.spare, m)
	}
}

// Request notes that the contents of a rendezvous message were asked for, until
// EndRequest.
func (q *TaggedQueue) Request(m *Tagged) { q.requested = append(q.requested, m) }

// EndRequest notes that the contents have arrived, or will not.
func (q *TaggedQueue) EndRequest(m *Tagged) {
	q.requested = slices.DeleteFunc(q.requested, func(other *Tagged) bool { return other == m })
}

// Requested returns the message with a number from a rank whose contents are on their
// way, or nil.
func (q *TaggedQueue) Requested(from int, number uint32) *Tagged {
	for _, m := range q.requested {
		if m.From == from && m.Number == number {
			return m
		}
	}
	return nil
}

// Withdraw drops a rendezvous message that its sender has taken back, and ends the
// wait for its contents with ErrWithdrawn.
func (q *TaggedQueue) Withdraw(from int, number uint32) {
	q.removeAll(func(m *Tagged) bool { return m.Rendezvous && m.From == from && m.Number == number })
	if m := q.Requested(from, number); m != nil {
		m.Done(ErrWithdrawn)
	}
}

// Lose drops the rendezvous messages of a rank that is gone.
func (q *TaggedQueue) Lose(from int) {
	q.removeAll(func(m *Tagged) bool { return m.Rendezvous && m.From == from })
}

// Revoke removes the messages of the contexts that are revoked, and returns them.
func (q *TaggedQueue) Revoke(revoked func(context uint32) bool) (removed []*Tagged) {
	q.removeAll(func(m *Tagged) bool {
		if !revoked(m.Context) {
			return false
		}
		removed = append(removed, m)
		return true
	})
	return removed
}

// Release removes the eager messages of a context, and returns them.
func (q *TaggedQueue) Release(context uint32) (released []*Tagged) {
	q.removeAll(func(m *Tagged) bool {
		if m.Context != context || m.Rendezvous {
			return false
		}
		released = append(released, m)
		return true
	})
	return released
}
