package chorale

import (
	"errors"
	"fmt"

	"github.com/chorale-go/chorale/internal/exec"
	"github.com/chorale-go/chorale/transport"
)

// What a call can fail of, for errors.Is.
var (
	// ErrArgument: the call was wrong on this rank. It has done nothing, and
	// the communicator is as good as before if all ranks have got this error.
	ErrArgument = errors.New("wrong argument")
	// ErrBusy: the communicator is in another call, in another goroutine.
	ErrBusy = errors.New("the communicator is in another call")
	// ErrClosed: this rank has left the job.
	ErrClosed = transport.ErrClosed
	// ErrLeft: a rank that this one needs has left the job.
	ErrLeft = transport.ErrLeft
	// ErrLost: a rank that this one needs is gone without a word.
	ErrLost = transport.ErrLost
	// ErrAborted: a rank that this one needs gave up.
	ErrAborted = transport.ErrAborted
)

// A MismatchError says that two ranks have called different things, and what.
type MismatchError = transport.MismatchError

// An Error says which call failed, where, and why. Once an error other than
// ErrArgument or ErrBusy has come, the rank's part in the job is over: its
// peers are told, and later calls fail too.
type Error struct {
	Call string // what was called, as in "allreduce"
	Rank int    // the rank that reports it
	Step int    // the step of the rank's program, or -1
	Peer int    // the rank on whose account it failed, or -1
	Err  error
}

func (e *Error) Error() string {
	s := fmt.Sprintf("chorale: %s on rank %d", e.Call, e.Rank)
	if e.Step >= 0 {
		s += fmt.Sprintf(", step %d", e.Step)
	}
	return s + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// failed locates what a run of a plan returned.
func (c *Comm) failed(call string, err error) error {
	e := &Error{Call: call, Rank: c.rank, Step: -1, Peer: -1, Err: err}
	var step *exec.StepError
	if errors.As(err, &step) {
		e.Step, e.Err = step.Step, step.Err
	}
	var peer *transport.PeerError
	var mismatch *transport.MismatchError
	var size *transport.SizeError
	switch {
	case errors.As(err, &peer):
		e.Peer = peer.Peer
	case errors.As(err, &mismatch):
		e.Peer = mismatch.Peer
	case errors.As(err, &size):
		e.Peer = size.Peer
	}
	return e
}

// wrong is an error of the caller's.
func (c *Comm) wrong(call, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &Error{Call: call, Rank: c.rank, Step: -1, Peer: -1, Err: argumentError{err}}
}

// argumentError is ErrArgument with the particulars, and without saying so.
type argumentError struct{ error }

func (e argumentError) Is(target error) bool { return target == ErrArgument }
func (e argumentError) Unwrap() error        { return e.error }
