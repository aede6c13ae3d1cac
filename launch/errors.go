package launch

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// An EndError says which rank ended the job before its time, and how.
type EndError struct {
	Rank  int // -1 when the ranks were goroutines of one process
	State *os.ProcessState
}

func (e *EndError) Error() string {
	if e.Rank < 0 {
		return "the program " + ended(e.State)
	}
	return fmt.Sprintf("rank %d %s", e.Rank, ended(e.State))
}

// A SignalError says that a signal to the launcher ended the job.
type SignalError struct{ Signal os.Signal }

func (e *SignalError) Error() string {
	return fmt.Sprintf("ended by signal %s", signalName(e.Signal))
}

// ErrBuild says that a Go package did not build. The go command has printed
// why.
var ErrBuild = errors.New("the package does not build")

// usageError is a mistake of the caller.
type usageError struct{ error }

func usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

func (e usageError) Unwrap() error { return e.error }

// Status returns the exit status of a launcher whose [Run] has returned err: 0
// for nil, 2 for a [Config] that cannot be run, the status of the rank that
// failed, 128 and the signal's number where a signal ended the rank or the
// launcher, and 1 for anything else.
func Status(err error) int {
	var (
		usage  usageError
		end    *EndError
		signal *SignalError
	)
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage):
		return 2
	case errors.As(err, &end):
		return statusOf(end.State)
	case errors.As(err, &signal):
		return 128 + number(signal.Signal)
	case errors.Is(err, syscall.EPIPE):
		return 128 + brokenPipe
	}
	return 1
}

// howEnded tells how a process ended, as in "exited with status 2" or "killed by
// signal 9 (killed)".
func howEnded(state *os.ProcessState) string {
	if sig := killedBy(state); sig != nil {
		return "killed by signal " + signalName(sig)
	}
	return fmt.Sprintf("exited with status %d", state.ExitCode())
}

// ended is the same as the rest of a sentence.
func ended(state *os.ProcessState) string {
	if killedBy(state) != nil {
		return "was " + howEnded(state)
	}
	return howEnded(state)
}

// statusOf returns what a shell would show for a process that has ended.
func statusOf(state *os.ProcessState) int {
	if sig := killedBy(state); sig != nil {
		return 128 + number(sig)
	}
	return state.ExitCode()
}

// signalName returns a signal's number and name, as in "9 (killed)".
func signalName(sig os.Signal) string {
	return fmt.Sprintf("%d (%v)", number(sig), sig)
}

func number(sig os.Signal) int {
	if s, ok := sig.(syscall.Signal); ok {
		return int(s)
	}
	return 0
}
