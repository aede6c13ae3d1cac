// Package transport says what moving bytes between the ranks of a job means.
// Its subpackages do it: inproc between goroutines, tcp between processes.
//
// A transport knows nothing of schedules or algorithms. It sees steps: lists
// of byte slices to hand over and of byte slices to fill.
package transport

import "context"

// An Endpoint is one rank's attachment to a job.
//
// Exchange may be called by several goroutines at a time if their steps belong
// to different contexts; steps of one context follow each other. An error from
// Exchange ends the endpoint's part in the job: its peers are told, later calls
// return the same error, and only Close is left to do.
type Endpoint interface {
	// Rank returns this endpoint's rank, 0 ≤ Rank < Size.
	Rank() int
	// Size returns the number of ranks of the job.
	Size() int
	// Exchange does one step: it starts every send and receive, and returns
	// when all are complete, that is, when every receive has landed and the
	// memory of every send may be written again. It returns early, with an
	// error, when ctx ends, a peer is lost or leaves, the job is aborted, or a
	// message does not belong to what this rank is doing.
	Exchange(ctx context.Context, step Step) error
	// Close leaves the job. What was sent and completed still arrives.
	// Closing twice is allowed.
	Close() error
}

// A Signature says which call a message belongs to. Both ends of a message
// must have equal signatures; where they differ, ranks have called different
// things, and both get a [MismatchError].
type Signature struct {
	Context  uint32 // the communicator: messages of different contexts never meet
	Sequence uint32 // the call's number within the context
	Call     string // what was called, for comparing and for people: "allreduce sum float64 count=10 algorithm=ring"
}

// A Step is what an endpoint does at once. The endpoint keeps none of its
// slices after Exchange has returned, and writes to nothing but Recv.Into.
type Step struct {
	Signature Signature
	Sends     []Send
	Recvs     []Recv
}

// A Send hands the same bytes to one rank or several. Messages from one rank to
// another arrive in the order in which they were sent; within a step, in the
// order listed. Data may be empty: the message is still sent.
type Send struct {
	To   []int
	Data []byte
}

// A Recv takes the next message from one rank. The message must be as long as
// Into, or the receive fails with a [SizeError].
//
// Without Combine the bytes replace Into. With it, Into becomes
// Combine(Into, Held, incoming), in whole or piece by piece: the transport
// calls Combine on matching pieces of the three, each a multiple of Elem bytes
// long, straight from where the incoming bytes lie. Held is as long as Into,
// and is either the same memory or does not overlap it.
type Recv struct {
	From    int
	Into    []byte
	Held    []byte
	Combine func(into, held, incoming []byte)
	Elem    int // bytes per element, at least 1 when Combine is set

	// Cached says that Into is best kept in cache. It is a hint, and need not be
	// set.
	Cached bool

	// InTurn holds this receive back until every receive listed before it is
	// complete. Set where both write the same bytes; other receives land in
	// the order in which they come.
	InTurn bool
}
