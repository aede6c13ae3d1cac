package match

import (
	"slices"

	"github.com/chorale-go/chorale/transport"
)

// unexpected is the messages of one peer that have arrived before their receives. It
// is the flow control of steps, too. Each message counts with its size, or with all of
// the bound if it is longer, and with [transport.MessageCost]; of a rendezvous message
// the cost alone counts. A message that makes the sum exceed [transport.UnexpectedMax]
// has its context held: the peer sends nothing more in that context, and goes on in
// others. It may resume when this rank has received all that has arrived in the context,
// so that it may wait for more, or when the sum is at most half of the bound.
type unexpected struct {
	contexts []contextQueue // those with messages
	size     int            // what the messages count
	resumed  []uint32       // contexts that may be resumed
}

// A contextQueue is the unexpected messages of one context, in order; there is one or
// more.
type contextQueue struct {
	context  uint32
	messages []*Message
	held     bool // the peer sends nothing more
}

func (m *Message) cost() int {
	if m.Rendezvous {
		return transport.MessageCost
	}
	return min(m.Size, transport.UnexpectedMax) + transport.MessageCost
}

// Enqueue adds an unexpected message. It reports whether the peer must now be told to
// hold the message's context, until Resume returns it.
func (q *unexpected) Enqueue(m *Message) (hold bool) {
	c := q.in(m.Context)
	if c == nil {
		q.contexts = append(q.contexts, contextQueue{context: m.Context})
		c = &q.contexts[len(q.contexts)-1]
	}
	c.messages = append(c.messages, m)
	q.size += m.cost()
	if c.held || q.size <= transport.UnexpectedMax {
		return false
	}
	c.held = true
	if i := slices.Index(q.resumed, m.Context); i >= 0 { // the peer has not been told
		q.resumed = slices.Delete(q.resumed, i, i+1)
		return false
	}
	return true
}

// Resume returns a context that was held and in which the peer may go on. Ok is false
// if there is none. It is called until then whenever messages were delivered,
// continued or released.
func (q *unexpected) Resume() (context uint32, ok bool) {
	n := len(q.resumed) - 1
	if n < 0 {
		return 0, false
	}
	context = q.resumed[n]
	q.resumed = q.resumed[:n]
	return context, true
}

// Held returns the bytes of the unexpected messages that have arrived, with
// [transport.MessageCost] for each.
func (q *unexpected) Held() (n int) {
	for i := range q.contexts {
		for _, m := range q.contexts[i].messages {
			n += m.Got + transport.MessageCost
		}
	}
	return n
}

// First returns the first unexpected message of some context, or nil.
func (q *unexpected) First() *Message {
	if len(q.contexts) == 0 {
		return nil
	}
	return q.contexts[0].messages[0]
}

// FirstIn returns the first unexpected message of a context, or nil.
func (q *unexpected) FirstIn(context uint32) *Message {
	if c := q.in(context); c != nil {
		return c.messages[0]
	}
	return nil
}

// Release drops the unexpected messages of a context.
func (q *unexpected) Release(context uint32) {
	for m := q.FirstIn(context); m != nil; m = q.FirstIn(context) {
		m.Released = true
		q.remove(m)
	}
}

func (q *unexpected) in(context uint32) *contextQueue {
	for i := range q.contexts {
		if c := &q.contexts[i]; c.context == context {
			return c
		}
	}
	return nil
}

// remove removes the first message of its context.
func (q *unexpected) remove(m *Message) {
	c := q.in(m.Context)
	c.messages[0] = nil
	c.messages = c.messages[1:]
	q.size -= m.cost()
	low := q.size <= transport.UnexpectedMax/2
	if len(c.messages) > 0 && !low {
		return
	}
	q.contexts = slices.DeleteFunc(q.contexts, func(c contextQueue) bool {
		if c.held && (low || len(c.messages) == 0) {
			q.resumed = append(q.resumed, c.context)
		}
		return len(c.messages) == 0
	})
	if low {
		for i := range q.contexts {
			q.contexts[i].held = false
		}
	}
}
