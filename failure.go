package chorale

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/chorale-go/chorale/internal/callsite"
	"github.com/chorale-go/chorale/internal/failure"
	"github.com/chorale-go/chorale/internal/ranklist"
	"github.com/chorale-go/chorale/transport"
)

// A PanicError is the error of a function of the program that has panicked: of the function
// of a rank, of one that [Start] or [Prepare] was given, or of an operation. Errors.As finds
// it in what [Run] returns. Its text is one line, with the place of the panic, and without
// the stack, which may be long and tells of the program.
type PanicError struct {
	Value any    // of the panic
	Where string // the line of the program that panicked, as in "train/main.go:41"; "" if unknown
	Stack string // of the goroutine, from the panic on

	what string // the function; "" for that of the rank
}

// newPanicError returns the error of a panic. The function that has recovered calls it.
func newPanicError(what string, value any) *PanicError {
	return &PanicError{Value: value, Where: callsite.Line(), Stack: panicStack(string(debug.Stack())), what: what}
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

func (e *PanicError) Error() string {
	s := fmt.Sprintf("panic: %v", e.Value)
	if e.what != "" {
		s = fmt.Sprintf("%s panicked: %v", e.what, e.Value)
	}
	return s + inBrackets(e.Where)
}

// Unwrap returns the value of the panic, if that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// inBrackets returns the line of a program as it is put behind a text.
func inBrackets(where string) string {
	if where == "" {
		return ""
	}
	return " (" + where + ")"
}

// stackOf returns the stack of the panic that an error tells of, or "".
func stackOf(err error) string {
	var p *PanicError
	if errors.As(err, &p) {
		return p.Stack
	}
	return ""
}

// withStack returns the text of an error with the stack of the panic that it tells of.
func withStack(err error) string {
	return strings.TrimRight(err.Error()+"\n"+stackOf(err), "\n")
}

// withoutRank returns the text of a rank's error without the rank where that is the job's:
// the text is shown behind it.
func withoutRank(err error, rank int) string {
	text := err.Error()
	var e *Error
	if errors.As(err, &e) && e.Rank == rank {
		text = strings.Replace(text, fmt.Sprintf(" on rank %d", rank), "", 1)
	}
	return strings.TrimPrefix(text, fmt.Sprintf("rank %d ", rank))
}

// failureOf returns the error of a rank's function as the error that ranks share is made of.
func failureOf(err error, rank int) *failure.Failure {
	if err == nil {
		return nil
	}
	f := &failure.Failure{Text: withoutRank(err, rank), Details: stackOf(err), Peer: -1}
	var left *transport.UnreceivedError
	if errors.As(err, &left) && left.Mine.Call != "" && left.Mine.Sequence == left.Theirs.Sequence && left.Mine.Context == left.Theirs.Context {
		// Its call was complete before the mismatch was found.
		f.Call, f.Peer, f.Theirs = callOf(left.Mine, ""), left.Peer, callOf(left.Theirs, "")
		return f
	}
	var e *Error
	var earlier *earlierError
	if errors.As(err, &earlier) {
		e = earlier.err
	} else {
		errors.As(err, &e)
	}
	if e != nil && e.signature.Call != "" {
		f.Call, f.Peer = callOf(e.signature, e.Where), e.Peer
		var m *MismatchError
		if errors.As(e.Err, &m) {
			f.Theirs = callOf(m.Theirs, "")
		}
	}
	return f
}

func callOf(s transport.Signature, where string) *failure.Call {
	return &failure.Call{Context: s.Context, Sequence: s.Sequence, Text: s.Call, Where: where}
}

// A ranksError is an error of a job's ranks.
type ranksError struct {
	failure.Shared
	err error // of the first rank that failed
}

// newRanksError returns the error of the rank that has failed first, with the others that share
// it. Errs has the error of each rank.
func newRanksError(first int, errs []error) *ranksError {
	first = originOf(first, errs)
	failures := make([]*failure.Failure, len(errs))
	for rank, err := range errs {
		failures[rank] = failureOf(err, rank)
	}
	e := &ranksError{err: errs[first]}
	for _, shared := range failure.Share(failures) {
		for _, rank := range shared.Ranks {
			if rank == first {
				e.Shared = shared
			}
		}
	}
	return e
}

// originOf returns the rank whose error is the cause of a rank's: if that has heard that another
// rank gave up, it may have returned before that one did.
func originOf(rank int, errs []error) int {
	for range errs {
		var heard *transport.PeerError
		if !errors.As(errs[rank], &heard) || !errors.Is(heard, transport.ErrAborted) || heard.Peer >= len(errs) || errs[heard.Peer] == nil {
			break
		}
		rank = heard.Peer
	}
	return rank
}

func (e *ranksError) Error() string {
	text := strings.TrimPrefix(e.Text, "chorale: ")
	if e.Named {
		return text
	}
	return ranklist.Name(e.Ranks) + ": " + text
}

func (e *ranksError) Unwrap() error { return e.err }
