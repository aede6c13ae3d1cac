package launch

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// An EndError names the rank whose failure ended the job, and how it ended.
type EndError struct {
	Rank  int // -1 if the ranks were goroutines of one process
	State *os.ProcessState
}

func (e *EndError) Error() string {
	if e.Rank < 0 {
		return "the program " + endPhrase(e.State)
	}
	return fmt.Sprintf("rank %d %s", e.Rank, endPhrase(e.State))
}

// A SignalError says that a signal to the launcher ended the job.
type SignalError struct{ Signal os.Signal }

func (e *SignalError) Error() string {
	return fmt.Sprintf("ended by signal %s", signalName(e.Signal))
}

// ErrBuild says that a Go package did not build. The go command has printed the
// reason on [Config.Stderr].
var ErrBuild = errors.New("the package does not build")

// A usageError is a Config that cannot be run.
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

// howEnded describes how a process ended, as in "exited with status 2" or "killed by
// signal 9 (killed)".
func howEnded(state *os.ProcessState) string {
	if sig := killedBy(state); sig != nil {
		return "killed by signal " + signalName(sig)
	}
	return fmt.Sprintf("exited with status %d", state.ExitCode())
}

// endPhrase is howEnded as a predicate, as in "was killed by signal 9 (killed)".
func endPhrase(state *os.ProcessState) string {
	if killedBy(state) != nil {
		return "was " + howEnded(state)
	}
	return howEnded(state)
}

// statusOf returns the exit status that a shell would show for a process.
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
