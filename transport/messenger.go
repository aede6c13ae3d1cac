package transport

import "context"

// Any stands for every rank, or for every tag, in a receive or a probe.
const Any = -1

// A Match is what a tagged message is told apart by, beside its sender.
type Match struct {
	Context uint32 // the communicator: messages of different contexts never meet
	Tag     int    // chosen by the program, 0 or more; Any in a receive or a probe
}

// A MessageInfo describes a tagged message without its contents.
type MessageInfo struct {
	From, Tag int
	Size      int    // bytes
	Type      string // the type of the bytes as the sender states it, as in "float64"
}

// A Messenger carries tagged messages: messages that a receiver picks by sender
// and tag, in any order. Tagged messages are independent of steps and have no
// signature.
//
// Any number of goroutines may call its methods at the same time, also during an
// Exchange. Messages from one rank to another with one Match are received in the
// order in which they were sent. A rank may send messages to itself.
//
// The methods fail as Exchange does when a rank that they need is lost or has
// left, or the job is aborted. A message that its sender sent before it left can
// still be received. When ctx ends before a message has been found, or before its
// transfer has begun, its error is returned and the endpoint stays usable.
type Messenger interface {
	// Send sends a message. It returns when data may be written again: for a short
	// message, which is copied, at once; for a long message when a receive has asked
	// for it and all of it is on its way.
	Send(ctx context.Context, to int, m Match, typeName string, data []byte) error

	// Recv waits for the first message that matches m and comes from a rank, or
	// from any rank if from is Any. It copies the message to the beginning of
	// into. If the message is longer than into, or kind is not its Type, Recv
	// leaves the message queued and returns its MessageInfo together with a
	// [SizeError] or [TypeError].
	Recv(ctx context.Context, from int, m Match, typeName string, into []byte) (MessageInfo, error)

	// TryRecv is Recv without waiting for a message: found reports whether there is
	// one now. Then TryRecv returns what Recv would; it may wait for the contents of
	// a long message.
	TryRecv(ctx context.Context, from int, m Match, typeName string, into []byte) (info MessageInfo, found bool, err error)

	// Probe finds the message that Recv would receive, and leaves it queued. If
	// wait is set, Probe waits for one; otherwise found reports whether there is
	// one now.
	Probe(ctx context.Context, from int, m Match, wait bool) (info MessageInfo, found bool, err error)
}
