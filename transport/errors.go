package transport

import (
	"context"
	"errors"
	"fmt"
)

// Sentinel errors, for errors.Is: why an endpoint's part in a job has ended.
var (
	// ErrClosed: this endpoint was closed, or used after its Close.
	ErrClosed = errors.New("endpoint closed")
	// ErrLeft: the peer closed its endpoint while a message from or to it was
	// still due.
	ErrLeft = errors.New("the rank has left the job")
	// ErrLost: the peer is gone and has sent no termination notice: its process
	// ended, or its connection broke.
	ErrLost = errors.New("the rank is lost")
	// ErrAborted: the peer gave up and sent the reason.
	ErrAborted = errors.New("the rank gave up")
	// ErrRevoked: the peer has revoked the communicator, and is not lost.
	ErrRevoked = errors.New("the rank has revoked the communicator")
	// ErrAllLeft: no rank is left from which a tagged message could come. It wraps
	// ErrLeft.
	ErrAllLeft = fmt.Errorf("%w: so have all others", ErrLeft)
	// ErrPanicked: a Combine of this rank panicked, or ended its goroutine.
	ErrPanicked = errors.New("a Combine panicked")
	// ErrTwoSteps: this rank began a step while another of the same context was in
	// progress.
	ErrTwoSteps = errors.New("two steps of one context at a time")
)

// A PeerError names the rank because of which an operation failed.
type PeerError struct {
	Peer   int
	Err    error  // ErrLeft, ErrAllLeft, ErrLost, ErrAborted or ErrRevoked
	Reason string // further detail; may be empty
}

func (e *PeerError) Error() string {
	s := fmt.Sprintf("rank %d: %v", e.Peer, e.Err)
	if e.Reason != "" {
		s += ": " + e.Reason
	}
	return s
}

func (e *PeerError) Unwrap() error { return e.Err }

// A MismatchError says that two ranks have called different things.
type MismatchError struct {
	Rank, Peer   int
	Mine, Theirs Signature
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("ranks differ in what they call: rank %d is in call %d, %q; rank %d is in call %d, %q",
		e.Rank, e.Mine.Sequence, e.Mine.Call, e.Peer, e.Theirs.Sequence, e.Theirs.Call)
}

// A SizeError says that a message is not as long as its receive.
type SizeError struct {
	Peer      int // the sender
	Got, Want int // bytes

	// Elem is the bytes of an element, and Type its type. Both are set above the endpoint,
	// which knows bytes alone; 0 if they are unknown.
	Elem int
	Type string
}

func (e *SizeError) Error() string {
	if e.Elem > 0 {
		return fmt.Sprintf("message from rank %d has %d %s, want %d", e.Peer, e.Got/e.Elem, e.Type, e.Want/e.Elem)
	}
	return fmt.Sprintf("message from rank %d has %d bytes, want %d", e.Peer, e.Got, e.Want)
}

// A RankError says that a step names a rank that cannot be its peer.
type RankError struct{ Peer, Rank, Size int }

func (e *RankError) Error() string {
	if e.Peer == e.Rank {
		return fmt.Sprintf("rank %d cannot exchange messages with itself", e.Rank)
	}
	return fmt.Sprintf("no rank %d: the job has ranks 0 to %d", e.Peer, e.Size-1)
}

// A TypeError says that a tagged message is not of the type that its receiver
// wants.
type TypeError struct {
	Peer      int // the sender
	Got, Want string
}

func (e *TypeError) Error() string {
	return fmt.Sprintf("message from rank %d is of type %s, want %s", e.Peer, e.Got, e.Want)
}

// An UnreceivedError says that a rank leaves although a message that was sent to it was
// never received: ranks have called different things, or one has made a call fewer.
type UnreceivedError struct {
	Rank, Peer   int          // the rank that leaves, and the sender
	Mine, Theirs Signature    // the rank's last call, and the call of the message
	Tagged       *MessageInfo // the message, if it is a tagged one; it has no call
}

func (e *UnreceivedError) Error() string {
	if m := e.Tagged; m != nil {
		return fmt.Sprintf("rank %d leaves without having received the message with tag %d that rank %d sent, %d bytes of type %s",
			e.Rank, m.Tag, e.Peer, m.Size, m.Type)
	}
	s := fmt.Sprintf("rank %d leaves without having received what rank %d sent in call %d, %q; ", e.Rank, e.Peer, e.Theirs.Sequence, e.Theirs.Call)
	if e.Mine.Call == "" {
		return s + "it has made no call itself"
	}
	return s + fmt.Sprintf("its own last call was call %d, %q", e.Mine.Sequence, e.Mine.Call)
}

// An UndeliveredError says that a rank has left although messages that it had sent,
// and whose sends were complete, could not be delivered.
type UndeliveredError struct {
	Rank, Peer int   // the sender, and the first receiver that has not taken its messages
	Bytes      int   // undelivered, to all peers
	Err        error // why the sender gave up
}

func (e *UndeliveredError) Error() string {
	return fmt.Sprintf("rank %d leaves with %d bytes of messages undelivered, which rank %d has not taken: %v", e.Rank, e.Bytes, e.Peer, e.Err)
}

func (e *UndeliveredError) Unwrap() error { return e.Err }

// ErrLinger: receivers have not taken a rank's messages for so long that it leaves.
var ErrLinger = errors.New("it has waited for as long as it lingers")

// Cause returns why ctx has ended. Where the context was given a cause, the text is that of
// the cause alone, and errors.Is finds both. It returns nil if ctx has not ended.
func Cause(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		return nil // the cause is under a lock
	}
	if why := context.Cause(ctx); why != err {
		return &causeError{why, err}
	}
	return err
}

// A causeError is the cause of a context that has ended, and the context's error.
type causeError struct{ cause, err error }

func (e *causeError) Error() string   { return e.cause.Error() }
func (e *causeError) Unwrap() []error { return []error{e.err, e.cause} }
