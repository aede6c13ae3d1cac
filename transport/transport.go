package transport

import (
	"context"
	"time"
)

// An Exchanger does the steps of collective calls.
type Exchanger interface {
	// Exchange does one step: it starts every send and receive, and returns when
	// all are complete. Then every receive has its message, and the memory of
	// every send may be written again. Exchange returns early, with an error, when
	// ctx ends, a peer is lost or leaves, the job is aborted, or a message does not
	// belong to the call that this rank is in.
	//
	// Several goroutines may call Exchange at a time if their steps belong to
	// different contexts; steps of one context follow each other.
	//
	// If ctx ends, or a peer is lost, gives up or leaves, the communicator of the step is
	// revoked: see [Revoker]. Any other error ends the endpoint's part in the job: its
	// peers are told, later calls return the same error, and only Close is left to do.
	Exchange(ctx context.Context, step Step) error
}

// A Revoker keeps the failure of one communicator from the others. Numbers are those that
// [Communicator] returns.
//
// A communicator that is revoked stays so. Operations in progress in its contexts end with
// the error, and later ones begin with it, on this rank and, as soon as they hear of it, on
// all others of the communicator: each that hears of it tells all others, so that all hear
// of it although some are lost meanwhile. Their errors are the same [PeerError]. What was
// sent in its contexts and is not received is dropped. When an operation has returned, its
// memory is the caller's again: no peer receives what is written there afterwards. Only
// tagged messages of the communicator's resilient context go on ([Resilient]); there,
// an operation fails if the one rank is lost, has given up or has left that it waits for.
//
// A rank that is lost, or whose endpoint's part in the job has ended by an error, revokes
// all communicators that it belongs to, on every rank that hears of it.
type Revoker interface {
	// SetMembers says which ranks belong to a communicator. It is called before the
	// first operation in its contexts, by each of them; nil, after the last one, forgets
	// them. All ranks belong to a communicator whose members are not set. The endpoint
	// does not change the slice, and keeps it.
	SetMembers(communicator uint32, ranks []int)
	// Revoke revokes a communicator because of an error; the other ranks get a PeerError
	// that names this rank, unless why is a PeerError, which they get as it is. If the
	// communicator is revoked already, or the endpoint has ended, Revoke does nothing.
	// It does not wait for other ranks.
	Revoke(communicator uint32, why error)
	// Revoked returns why operations in a communicator fail, also because the endpoint has
	// ended, or nil.
	Revoked(communicator uint32) error
}

// An Endpoint is one rank's attachment to a job. Every transport implements all
// of it, and package transporttest tests that it does.
type Endpoint interface {
	// Rank returns this endpoint's rank, 0 ≤ Rank < Size.
	Rank() int
	// Size returns the number of ranks of the job.
	Size() int

	Exchanger
	Revoker
	Messenger
	Allocator

	// Release drops everything that the endpoint holds for a context in which it
	// has had its last Exchange and received its last tagged message. Peers may
	// still receive what it has sent them there.
	Release(context uint32)

	// CheckUnreceived returns an [UnreceivedError] if a message of a step has
	// arrived that no Exchange has received, or a tagged one that no receive has. A
	// rank that leaves then has not called what others have: a short message completes
	// without its receiver, so that its sender may never notice. CheckUnreceived
	// returns nil after the endpoint's part in the job has ended. Messages of resilient
	// contexts do not count. No Exchange may be in progress.
	CheckUnreceived() error

	// Held counts what the endpoint holds of messages. Each count has a bound, which
	// [Held] names. Held may be called at any time, also after Close.
	Held() Held

	// Stalls returns what waits at the endpoint for other ranks at the moment, and for
	// which ones. It may be called at any time, also during an Exchange. Operations
	// that have waited for less than a few milliseconds may be missing.
	Stalls() []Stall

	// Abort ends the endpoint's part in the job because of an error: its peers get
	// [ErrAborted] with its text, operations in progress and later ones fail with it, and
	// a Close that waits for receivers returns. It does nothing once the part has ended,
	// and does not wait for other ranks.
	Abort(why error)

	// Close leaves the job. Messages that were sent and completed still arrive: Close
	// returns when each of them is where its receiver finds it without this endpoint.
	// That is at once, unless a receiver has so many messages unreceived that it takes
	// no more. Then Close waits until the receiver takes them or leaves, [Linger] at
	// most. When that has passed, or the endpoint fails meanwhile, Close returns an
	// [UndeliveredError], and the peers get [ErrAborted] with it as the reason.
	// Closing twice is allowed; a second Close returns nil at once.
	Close() error
}

// A Stall is an operation that waits for other ranks: an Exchange, or a Send, Recv or
// Probe of a tagged message.
type Stall struct {
	Signature Signature // of the step; a tagged message has a Context alone
	Tag       int       // of the tagged message; Any for any; 0 where Signature names a call
	// Peers are the ranks whose messages have not arrived, or which have not taken
	// this rank's, in ascending order. Nil stands for any one of the other ranks.
	Peers []int
	// Message says what is done with the tagged message: "send", "recv" or "probe". "" where
	// Signature names a call, and where the endpoint does not say it.
	Message string
	// Where is the line of the program that waits, as in "train/main.go:41". Transports leave
	// it empty: who explains a wait finds it by Operation.
	Where string
	// Wait tells a wait for a tagged message from the endpoint's other ones, also of the
	// same tag. 0 where Signature names a call.
	Wait uint64
	// Step is the Index of the step; 0 of a tagged message.
	Step int
	// Operation tells in which goroutine the operation waits: where the stack of a
	// goroutine shows the arguments of a function of the transport, and this is the first
	// of them, it is that goroutine. 0 if the transport does not know.
	Operation uintptr
}

// Linger is how long an endpoint's Close waits for receivers by default.
const Linger = time.Hour

// Held is what an endpoint holds of messages, in bytes. The cost of each message
// counts beside its contents, [MessageCost] bytes.
type Held struct {
	// Unexpected is the messages of steps that no Exchange has received yet. From
	// each peer they are UnexpectedMax bytes at most, and what was under way when
	// that was reached. Then the peer sends no more in the contexts of these
	// messages until they are received: its Exchange waits.
	Unexpected int
	// Tagged is the tagged messages that were not received. From each peer they are
	// TaggedMax bytes at most. A message beyond that waits in its sender's memory,
	// and its Send with it.
	Tagged int
	// Unsent is the copies of messages that were sent and completed, but are not yet
	// where their receivers find them. To each peer they are UnsentMax bytes at most;
	// a send beyond that waits.
	Unsent int
	// Allocated is the memory from Alloc that was not freed. Where ranks share memory, the
	// transport has a bound for it.
	Allocated int
}

// The bounds of [Held].
const (
	UnexpectedMax = 4 << 20
	TaggedMax     = 1 << 20
	UnsentMax     = 2 << 20
	MessageCost   = 64
)

// A LossSink is told which ranks are lost, by a launcher that supervises them. An
// endpoint whose ranks can be lost alone, because each is a process, implements it.
type LossSink interface {
	// Lost tells the endpoint that a rank is gone. Every communicator that the rank
	// belongs to is revoked, and every operation that waits for the rank, now or later,
	// fails, with a [PeerError] that holds [ErrLost] and the reason. A rank that is not
	// a peer is ignored.
	Lost(rank int, reason string)
}

// A ProcessEndpoint is an endpoint of a job in which every rank is a process.
type ProcessEndpoint interface {
	Endpoint
	LossSink
}

// A Starter is an endpoint that does steps while its caller does something else: what
// joins two endpoints starts a step at both.
type Starter interface {
	// Start starts a step, as Exchange does, and does not wait for it. It returns nil
	// without an error if the step is complete. Otherwise the caller has to call Wait,
	// and leaves the memory of the step alone until that has returned.
	Start(ctx context.Context, step Step) (PendingStep, error)
}

// A PendingStep is a step that was started. One goroutine at a time uses it.
type PendingStep interface {
	// Poll does what can be done for the step without waiting. It reports whether
	// something was done, and whether the step is over. A Combine that panics there ends
	// the step.
	Poll() (moved, over bool)
	// Wait returns when the step is over, as Exchange does. It is called once.
	Wait() error
}

// A Signature names the call that a message belongs to. Both ends of a message
// must have equal signatures; where they differ, ranks have called different
// things, and both get a [MismatchError].
type Signature struct {
	Context  uint32 // the communicator: messages of different contexts never meet
	Sequence uint32 // the call's number within the context
	Call     string // what was called, for comparing and for people: "allreduce sum float64 count=10 algorithm=ring"
}

// ContextBits is how many bits of a context tell apart the contexts of one
// communicator. The others are the communicator's number.
const ContextBits = 12

// Communicator returns the number of the communicator that a context belongs to.
func Communicator(context uint32) uint32 { return context >> ContextBits }

// Resilient reports whether a context is the resilient one of its communicator: the last of
// its contexts, in which tagged messages go on after the communicator is revoked.
func Resilient(context uint32) bool { return context&resilient == resilient }

const resilient = 1<<ContextBits - 1

// ResilientContext returns the resilient context of a communicator.
func ResilientContext(communicator uint32) uint32 { return communicator<<ContextBits | resilient }

// A Step is what an endpoint does at once. The endpoint keeps none of its
// slices after Exchange has returned, and writes to nothing but Recv.Into.
type Step struct {
	Signature Signature
	Index     int // of the step in the rank's program, from 0, for people: endpoints compare it with nothing
	Sends     []Send
	Recvs     []Recv

	// Meanwhile is what the caller has to do besides, with memory that the step does not
	// write, nor send from where Meanwhile writes. An endpoint may call it once it has
	// started the sends, so that peers read them at the same time: at most once, in
	// Exchange, on its goroutine. The caller knows by itself whether it was called. It is
	// nil if there is nothing to do.
	Meanwhile func()
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
// long, straight from where the incoming bytes lie: that may be Into itself,
// unless Held is. Held is as long as Into, and is either the same memory or does
// not overlap it.
type Recv struct {
	From    int
	Into    []byte
	Held    []byte
	Combine func(into, held, incoming []byte)
	Elem    int // bytes per element, at least 1 when Combine is set

	// Temporal hints that Into is read again soon, so that it is best written by
	// stores that keep it in cache (temporal stores).
	Temporal bool

	// Ordered holds this receive back until every receive listed before it is
	// complete. It is set where both write the same bytes. Other receives land in
	// the order in which their messages arrive.
	Ordered bool
}
