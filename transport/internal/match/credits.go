package match

import (
	"errors"

	"github.com/chorale-go/chorale/transport"
)

// ErrWithdrawn says that a rendezvous message was withdrawn by its sender before
// its contents arrived.
var ErrWithdrawn = errors.New("the message was withdrawn")

const (
	// EagerMax is the longest tagged message that is sent eagerly, in bytes.
	EagerMax = 64 << 10
	// returnStep is how many credits are returned to a sender at a time.
	returnStep = transport.TaggedMax / 4
	// AnnouncedMax is how many rendezvous messages a rank announces to another that has
	// not asked for them: each counts as [transport.MessageCost] there, so that all of
	// them count as much as the eager messages may.
	AnnouncedMax = transport.TaggedMax / transport.MessageCost
)

// Credits is the flow control of the eager tagged messages between one rank and
// another, under way or unreceived. A message costs its length and
// [transport.MessageCost], and those of all messages are [transport.TaggedMax] at most; a
// message beyond it is sent by rendezvous.
type Credits struct {
	KeptBack bool // messages to the peer wait to be announced: an eager one would overtake them

	used     int // by messages to the peer that it may not have received
	consumed int // by messages of the peer that were received, and not yet returned
	arrived  int // by messages of the peer that have arrived, and not yet returned
}

// Use reports whether the credits suffice for an eager message of some size, and
// takes them if so. While messages are kept back they do not.
func (c *Credits) Use(size int) bool {
	cost := size + transport.MessageCost
	if c.KeptBack || c.used+cost > transport.TaggedMax {
		return false
	}
	c.used += cost
	return true
}

// Return gives credits back that the peer has returned.
func (c *Credits) Return(cost int) { c.used -= min(c.used, cost) }

// Refund gives back the credits of a message that is sent by rendezvous after all.
func (c *Credits) Refund(size int) { c.Return(size + transport.MessageCost) }

// Arrive notes that an eager message of the peer has arrived. It reports whether the
// peer had the credits for it.
func (c *Credits) Arrive(size int) bool {
	c.arrived += size + transport.MessageCost
	return c.arrived <= transport.TaggedMax
}

// Consume notes that a message of the peer was received. It returns the credits to
// return to the peer now, which mostly are none: they are returned in large steps.
func (c *Credits) Consume(size int) (due int) {
	if c.consumed += size + transport.MessageCost; c.consumed >= returnStep {
		due, c.consumed = c.consumed, 0
		c.arrived -= due
	}
	return due
}
