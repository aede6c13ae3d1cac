package chorale

import (
	"errors"
	"fmt"

	"github.com/chorale-go/chorale/internal/exec"
	"github.com/chorale-go/chorale/transport"
)

// Sentinel errors, for errors.Is.
var (
	// ErrArgument: an argument of the call was wrong on this rank. Nothing was
	// sent. The communicator stays usable if every rank got this error.
	ErrArgument = errors.New("wrong argument")
	// ErrBusy: the communicator is in another collective, in another goroutine, or in
	// the one whose operation makes this call. Nothing was sent, and the communicator
	// stays usable.
	ErrBusy = errors.New("the communicator is in another call")
	// ErrClosed: this rank has left the job, or freed the communicator.
	ErrClosed = transport.ErrClosed
	// ErrLeft: a rank that this one needs has left the job.
	ErrLeft = transport.ErrLeft
	// ErrLost: a rank that this one needs is gone and has sent no termination
	// notice.
	ErrLost = transport.ErrLost
	// ErrAborted: a rank that this one needs gave up.
	ErrAborted = transport.ErrAborted
)

// A MismatchError says that two ranks made different calls, and which.
type MismatchError = transport.MismatchError

// An Error says which call failed, where, and why. The package documentation says
// what remains usable after it.
type Error struct {
	Call string // as in "allreduce"
	Rank int    // the communicator's rank that reports it; -1 if the communicator is nil
	Step int    // the step of the rank's program, from 0; -1 if it failed in none
	Peer int    // the job's rank because of which it failed, or -1
	Err  error
}

func (e *Error) Error() string {
	s := "chorale: " + e.Call
	if e.Rank >= 0 {
		s += fmt.Sprintf(" on rank %d", e.Rank)
	}
	if e.Step >= 0 {
		s += fmt.Sprintf(", step %d", e.Step)
	}
	return s + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// newError returns an Error of this rank that belongs to no step or peer.
func (c *Comm) newError(call string, err error) *Error {
	return &Error{Call: call, Rank: c.Rank(), Step: -1, Peer: -1, Err: err}
}

// failed returns the Error for what a run of a plan, or an endpoint, returned.
func (c *Comm) failed(call string, err error) error {
	e := c.newError(call, err)
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

// argumentErrorf returns the Error for a wrong argument.
func (c *Comm) argumentErrorf(call, format string, args ...any) error {
	return c.newError(call, argumentError{fmt.Errorf(format, args...)})
}

// rejectCallf returns the Error for a wrong argument of a collective that has not
// begun, or the reason why the collective cannot begin. The call counts: see do.
func (c *Comm) rejectCallf(call, format string, args ...any) error {
	if c == nil || !c.state.CompareAndSwap(idle, busy) {
		return c.unusable(call)
	}
	defer c.end()
	c.sequence++
	return c.argumentErrorf(call, format, args...)
}

// An argumentError is an ErrArgument whose text is that of the error in it.
type argumentError struct{ error }

func (e argumentError) Is(target error) bool { return target == ErrArgument }
func (e argumentError) Unwrap() error        { return e.error }
