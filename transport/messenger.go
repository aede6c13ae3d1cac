package transport

import (
	"context"
	"sync/atomic"
)

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

// A Request is a tagged message that is sent or received. The zero Request is ready for
// StartSend or StartRecv. Info and Err belong to the caller once the request is done.
type Request struct {
	Info MessageInfo // of a receive: the message, also one that does not fit
	Err  error

	State any // the endpoint's, until the request is done
	Owner any // the part of the endpoint that has the request, where there are several
	done  atomic.Bool
}

// Done reports whether the request is done: the memory of its message is the caller's again.
func (r *Request) Done() bool { return r.done.Load() }

// Finish is for endpoints: it ends the request.
func (r *Request) Finish(info MessageInfo, err error) {
	r.Info = info
	r.End(err)
}

// End is Finish for a request whose Info is set, or stays empty.
func (r *Request) End(err error) {
	r.Err, r.State = err, nil
	r.done.Store(true)
}

// Reset makes a request ready for another message. It is done, and Wait has returned: until
// then, the endpoint may look at it.
func (r *Request) Reset() {
	r.Info, r.Err, r.Owner = MessageInfo{}, nil, nil
	r.done.Store(false)
}

// A Messenger carries tagged messages: messages that a receiver picks by sender
// and tag, in any order. Tagged messages are independent of steps and have no
// signature.
//
// Any number of goroutines may call its methods at the same time, also during an
// Exchange. Messages from one rank to another with one Match are received in the
// order in which they were sent. A message goes to the first of the receives in
// progress that match it, in the order in which these were started. A rank may send
// messages to itself.
//
// No goroutine works for a request. A rank that waits in any method of its endpoint,
// also in an Exchange, makes progress for all requests that it has started.
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

	// StartSend starts what Send does, and returns. The request ends when Send would
	// have returned, with its error. The caller does not write data until then. StartSend
	// itself waits for no other rank, except that it may wait until the receiver has
	// joined the job.
	StartSend(ctx context.Context, r *Request, to int, m Match, typeName string, data []byte)

	// StartRecv starts what Recv does, as StartSend does. The caller does not touch into
	// until the request is done.
	StartRecv(ctx context.Context, r *Request, from int, m Match, typeName string, into []byte)

	// Wait returns when a request of this endpoint is done. Any number of goroutines
	// may wait for it.
	Wait(r *Request)

	// Cancel ends a request with an error, unless it is done or its transfer has begun.
	Cancel(r *Request, err error)

	// Progress makes the progress for all requests that needs no waiting.
	Progress()

	// Probe finds the message that Recv would receive, and leaves it queued. If
	// wait is set, Probe waits for one; otherwise found reports whether there is
	// one now.
	Probe(ctx context.Context, from int, m Match, wait bool) (info MessageInfo, found bool, err error)
}

// An EagerMessenger has short messages sent and received at once, which takes less time than
// what serves any message. SendEager and RecvEager change nothing if they report that they have
// not done so: the caller uses the method of [Messenger] then, which also says what fails.
type EagerMessenger interface {
	// SendEager is Send for a message that is copied at once.
	SendEager(ctx context.Context, to int, m Match, typeName string, data []byte) (sent bool)

	// RecvEager is Recv for a message that has arrived, or arrives in a moment, and that no
	// other receive in progress gets.
	RecvEager(ctx context.Context, from int, m Match, typeName string, into []byte) (got Received, ok bool)

	// StartRecvEager is StartRecv, but where it has the message at once, the request is not
	// started, and ok is true.
	StartRecvEager(ctx context.Context, r *Request, from int, m Match, typeName string, into []byte) (got Received, ok bool)
}

// EagerOf returns the EagerMessenger of an endpoint: the endpoint, or what its method Eager
// returns if it has one, as where it contains another endpoint. It returns nil if there is none.
func EagerOf(e Endpoint) EagerMessenger {
	if e, ok := e.(interface{ Eager() EagerMessenger }); ok {
		return e.Eager()
	}
	m, _ := e.(EagerMessenger)
	return m
}

// Received is what a receive learns about its message, beside the type, which is its own.
type Received struct {
	From, Tag int
	Size      int // bytes
}

// Info returns what describes a message of a type.
func (r Received) Info(typeName string) MessageInfo {
	return MessageInfo{From: r.From, Tag: r.Tag, Size: r.Size, Type: typeName}
}
