package launch

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// An EndError names the rank whose failure ended the job, and how it ended.
type EndError struct {
	Rank int    // -1 if the ranks were goroutines of one process
	Host string // as [Config.Remote] names it; "" if that is nil
	Exit Exit
}

func (e *EndError) Error() string {
	if e.Rank < 0 {
		return "the program " + e.Exit.phrase()
	}
	return rankName(e.Rank, e.Host) + " " + e.Exit.phrase()
}

// rankName names a rank, and its host if that is not the launcher's.
func rankName(rank int, host string) string {
	if host == "" {
		return fmt.Sprintf("rank %d", rank)
	}
	return fmt.Sprintf("rank %d on host %s", rank, host)
}

// An Exit says how a process ended. The zero value is success.
type Exit struct {
	Status     int    // the exit status; -1 if a signal ended the process
	Signal     int    // the number of that signal, as the process's host counts; 0 if none did
	SignalName string // as in "killed"
}

// exitOf returns how a process of this host ended.
func exitOf(state *os.ProcessState) Exit {
	if sig := killedBy(state); sig != nil {
		return Exit{Status: -1, Signal: number(sig), SignalName: sig.String()}
	}
	return Exit{Status: state.ExitCode()}
}

// Success reports whether the process ended with status 0.
func (e Exit) Success() bool { return e == Exit{} }

// String describes the end, as in "exited with status 2" or "killed by signal 9 (killed)".
func (e Exit) String() string {
	if e.Signal != 0 {
		return fmt.Sprintf("killed by signal %d (%s)", e.Signal, e.SignalName)
	}
	return fmt.Sprintf("exited with status %d", e.Status)
}

// phrase is String as a predicate, as in "was killed by signal 9 (killed)".
func (e Exit) phrase() string {
	if e.Signal != 0 {
		return "was " + e.String()
	}
	return e.String()
}

// shellStatus returns the exit status that a shell would show for the process.
func (e Exit) shellStatus() int {
	if e.Signal != 0 {
		return 128 + e.Signal
	}
	return e.Status
}

// A SignalError says that a signal to the launcher ended the job.
type SignalError struct{ Signal os.Signal }

func (e *SignalError) Error() string {
	return fmt.Sprintf("ended by signal %s", signalName(e.Signal))
}

// ErrBuild says that a Go package did not build. The go command has printed the
// reason on [Config.Stderr].
var ErrBuild = errors.New("the package does not build")

// errNoContext is the error of a call whose context is nil.
var errNoContext = errors.New("the context is nil: want one, as context.Background()")

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
		return end.Exit.shellStatus()
	case errors.As(err, &signal):
		return 128 + number(signal.Signal)
	case errors.Is(err, syscall.EPIPE):
		return 128 + brokenPipe
	}
	return 1
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
