package chorale

import (
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/chorale-go/chorale/internal/callsite"
	"github.com/chorale-go/chorale/internal/exec"
	"github.com/chorale-go/chorale/internal/logging"
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
	// ErrLost: a rank of the communicator is gone and has sent no termination
	// notice.
	ErrLost = transport.ErrLost
	// ErrAborted: a rank of the communicator gave up, or the context of its collective
	// has ended.
	ErrAborted = transport.ErrAborted
	// ErrRevoked: a rank has revoked the communicator, and is not lost.
	ErrRevoked = transport.ErrRevoked
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

	// Where is the line of the program that made the call, as in "train/main.go:41": the file
	// with its folder. It is "" of an ErrArgument or ErrBusy, and where a goroutine of this
	// package's own made the call. The text has it where ranks have called different things.
	Where string

	signature transport.Signature // of a collective that has begun
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
	if e.differs() {
		s += inBrackets(e.Where)
	}
	return s + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// differs reports whether the ranks have called different things.
func (e *Error) differs() bool {
	switch e.Err.(type) {
	case *transport.MismatchError, *transport.SizeError, *transport.TypeError:
		return true
	}
	return e.signature.Call != "" && errors.Is(e.Err, ErrLeft) // the other has made other calls, or fewer
}

// located returns an error with the line of the program that waits for the call, if a
// goroutine of this package's own has made the call.
func located(err error) error {
	if e, ok := err.(*Error); ok && e.Where == "" && e.signature.Call != "" {
		at := *e
		at.Where = callsite.Line()
		return &at
	}
	return err
}

// newError returns an Error of this rank that belongs to no step or peer, and counts it.
func (c *Comm) newError(call string, err error) *Error {
	if c != nil && c.job.recorder != nil {
		c.job.recorder.fail(call)
	}
	return &Error{Call: call, Rank: c.Rank(), Peer: -1, Err: err}
}

// failed returns the Error for what a run of a plan, or an endpoint in a collective,
// returned: the communicator has failed, or this rank's part in the job has ended. Elem is
// the type of the elements, or nil.
func (c *Comm) failed(call string, signature transport.Signature, elem reflect.Type, err error) error {
	e := c.newError(call, err)
	e.Where, e.signature = callsite.Line(), signature
	var step *exec.StepError
	if errors.As(err, &step) {
		e.Step, e.Err = step.Step+1, step.Err
	}
	c.attribute(e)
	cause := e.Err
	if elem != nil {
		e.Err = inElements(e.Err, elem.String(), int(elem.Size()))
	}
	switch end := (&ending{e, cause, time.Now()}); { // other goroutines read e from here on
	case c.job.endpointError() != nil:
		end.keep(&c.job.ended)
	case c.job.endpoint.Revoked(c.identity.number) != nil:
		end.keep(&c.identity.failed)
	}
	return e
}

// messageFailed returns the Error for what an endpoint returned for a tagged message of
// elements of some type and size.
func (c *Comm) messageFailed(call, message, kind string, size int, err error) error {
	e := c.newError(call, err)
	e.Message, e.Where = message, callsite.Line()
	c.attribute(e)
	e.Err = inElements(e.Err, kind, size)
	return e
}

// inElements returns an error that counts elements where it is a SizeError, which counts
// bytes.
func inElements(err error, kind string, size int) error {
	if e, ok := err.(*transport.SizeError); ok && size > 0 && e.Got%size == 0 && e.Want%size == 0 {
		return &transport.SizeError{Peer: e.Peer, Got: e.Got, Want: e.Want, Elem: size, Type: kind}
	}
	return err
}

// attribute sets the peer of an error. The error of a call that fails because the
// communicator had failed before, or this rank's part in the job had ended, says when that
// was, and in which call.
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
	what, before := "this rank's part in the job ended", c.job.ended.Load()
	if before == nil {
		what, before = "the communicator failed", c.identity.failed.Load()
	}
	if before != nil && sameError(before.cause, e.Err) {
		e.Step, e.Err = 0, &earlierError{*before, what, time.Since(before.at)}
	}
}

// sameError reports whether a and b are one error.
func sameError(a, b error) bool {
	return reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

// An ending is the error of the collective in which a communicator has failed, or a rank's
// part in its job has ended.
type ending struct {
	err   *Error
	cause error // what the endpoint has returned, also for later calls
	at    time.Time
}

// keep keeps the ending as the first one, unless there is one.
func (e *ending) keep(first *atomic.Pointer[ending]) {
	if first.CompareAndSwap(nil, e) {
		logging.Logger().Error("failed", "rank", e.err.Rank, "call", e.err.Call, "peer", e.err.Peer, "where", e.err.Where, "err", e.err.Err)
	}
}

// An earlierError is the error of a call that could not begin after that.
type earlierError struct {
	ending
	what string // has ended
	ago  time.Duration
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
	return fmt.Sprintf("%s %v earlier, when its %s failed%s: %v", e.what, e.ago.Round(unit), e.err.Call, step, e.err.Err)
}

func (e *earlierError) Unwrap() error { return e.err.Err }

// errNoContext is the error of a call whose context is nil.
var errNoContext = argumentError{errors.New("the context is nil: want one, as context.Background()")}

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
