package chorale

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/chorale-go/chorale/internal/ranklist"
)

// A panicError is a panic of a function of the caller's.
type panicError struct {
	what  string // the function; "" for that of the rank
	value any
	stack string
}

// newPanicError returns the error of a panic. The function that has recovered calls it.
func newPanicError(what string, value any) *panicError {
	return &panicError{what, value, panicStack(string(debug.Stack()))}
}

// panicStack returns the part of a stack that led to a panic, without what recovered.
func panicStack(stack string) string {
	goroutine, _, _ := strings.Cut(stack, "\n")
	if _, calls, ok := strings.Cut(stack, "\npanic("); ok {
		if _, calls, ok = strings.Cut(calls, "\n\t"); ok { // the file of panic
			_, calls, _ = strings.Cut(calls, "\n")
			return goroutine + "\n" + calls
		}
	}
	return stack
}

func (e *panicError) Error() string { return e.brief() + "\n" + e.stack }

// brief returns the error without its stack.
func (e *panicError) brief() string {
	if e.what == "" {
		return fmt.Sprintf("panic: %v", e.value)
	}
	return fmt.Sprintf("%s panicked: %v", e.what, e.value)
}

func (e *panicError) Unwrap() error {
	err, _ := e.value.(error)
	return err
}

// brief is an error whose text has no stack: other ranks are told why this one gave up, not
// where.
type brief struct{ err error }

func (b brief) Error() string {
	var p *panicError
	if errors.As(b.err, &p) {
		return strings.Replace(b.err.Error(), p.Error(), p.brief(), 1)
	}
	return b.err.Error()
}

func (b brief) Unwrap() error { return b.err }

// stackOf returns the stack of the panic that an error tells of, or "".
func stackOf(err error) string {
	var p *panicError
	if errors.As(err, &p) {
		return p.stack
	}
	return ""
}

// withoutRank returns the text of a rank's error without the stack of a panic, and without
// the rank where that is the job's: the text is shown behind it.
func withoutRank(err error, rank int) string {
	text := brief{err}.Error()
	var e *Error
	if errors.As(err, &e) && e.Rank == rank {
		text = strings.Replace(text, fmt.Sprintf(" on rank %d", rank), "", 1)
	}
	return strings.TrimPrefix(text, fmt.Sprintf("rank %d ", rank))
}

// A ranksError is an error of a job's ranks.
type ranksError struct {
	ranks []int
	text  string
	err   error // of the first of them that failed
}

// share adds the ranks whose errors have the same text. Errs has the error of each rank.
func (e *ranksError) share(errs []error) {
	e.ranks = e.ranks[:0]
	for rank, err := range errs {
		if err != nil && withoutRank(err, rank) == e.text {
			e.ranks = append(e.ranks, rank)
		}
	}
}

func (e *ranksError) Error() string {
	s := ranklist.Name(e.ranks) + ": " + strings.TrimPrefix(e.text, "chorale: ")
	if stack := stackOf(e.err); stack != "" {
		s += "\n" + stack
	}
	return s
}

func (e *ranksError) Unwrap() error { return e.err }
