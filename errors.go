package chorale

import (
	"errors"
	"fmt"
	"reflect"
	"time"

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
	Step int    // the step of the rank's program, from 1; 0 if it failed in none
	Peer int    // the job's rank because of which it failed, or -1
	Err  error

	// Message says which tagged message it was, as in "3 int to rank 1 with tag 7"; "" of a
	// collective.
	Message string
}

func (e *Error) Error() string {
	s := "chorale: " + e.Call
	if e.Rank >= 0 {
		s += fmt.Sprintf(" on rank %d", e.Rank)
	}
	if e.Step > 0 {
		s += fmt.Sprintf(", step %d", e.Step)
	}
	if e.Message != "" {
		s += ", " + e.Message
	}
	return s + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// newError returns an Error of this rank that belongs to no step or peer.
func (c *Comm) newError(call string, err error) *Error {
	return &Error{Call: call, Rank: c.Rank(), Peer: -1, Err: err}
}

// failed returns the Error for what a run of a plan, or an endpoint in a collective,
// returned: this rank's part in the job has ended.
func (c *Comm) failed(call string, err error) error {
	e := c.newError(call, err)
	var step *exec.StepError
	if errors.As(err, &step) {
		e.Step, e.Err = step.Step+1, step.Err
	}
	c.attribute(e)
	c.job.ended.CompareAndSwap(nil, &ending{e, time.Now()})
	return e
}

// messageFailed returns the Error for what an endpoint returned for a tagged message.
func (c *Comm) messageFailed(call, message string, err error) error {
	e := c.newError(call, err)
	e.Message = message
	c.attribute(e)
	return e
}

// attribute sets the peer of an error. The error of a call that fails because this rank's
// part in the job had ended before says when that was, and in which call.
func (c *Comm) attribute(e *Error) {
	var peer *transport.PeerError
	var mismatch *transport.MismatchError
	var size *transport.SizeError
	switch {
	case errors.As(e.Err, &peer):
		e.Peer = peer.Peer
	case errors.As(e.Err, &mismatch):
		e.Peer = mismatch.Peer
	case errors.As(e.Err, &size):
		e.Peer = size.Peer
	}
	if before := c.job.ended.Load(); before != nil && sameError(before.err.Err, e.Err) {
		e.Step, e.Err = 0, &earlierError{*before, time.Since(before.at)}
	}
}

// sameError reports whether a and b are one error.
func sameError(a, b error) bool {
	return reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

// An ending is the error of the collective that ended a rank's part in its job.
type ending struct {
	err *Error
	at  time.Time
}

// An earlierError is the error of a call that could not begin after that.
type earlierError struct {
	ending
	ago time.Duration
}

func (e *earlierError) Error() string {
	unit := time.Millisecond
	if e.ago < unit {
		unit = time.Microsecond
	}
	step := ""
	if e.err.Step > 0 {
		step = fmt.Sprintf(" in step %d", e.err.Step)
	}
	return fmt.Sprintf("this rank's part in the job ended %v earlier, when its %s failed%s: %v", e.ago.Round(unit), e.err.Call, step, e.err.Err)
}

func (e *earlierError) Unwrap() error { return e.err.Err }

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
