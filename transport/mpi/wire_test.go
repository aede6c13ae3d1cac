//go:build mpi

package mpi

import (
	"context"
	"errors"
	"slices"
	"unsafe"

	"github.com/chorale-go/chorale/transport"
)

// An order is what the process of the tests asks of a rank. Replies carry its number.
type order struct {
	Number  uint64
	Job     int
	Call    string
	Ended   *wireError // why the operation's context has ended; an argument
	Step    wireStep
	Rank, N int // a peer, a size
	Ranks   []int
	Match   transport.Match
	Type    string
	Data    []byte
	Wait    bool
	Reason  string
}

// A reply is what a rank says about an order.
type reply struct {
	Number uint64
	Event  string // "done", "panic", "waits", or "combine", which wants an answer
	Err    *wireError
	Info   transport.MessageInfo
	Found  bool
	Data   []byte
	Memory [][]byte // the regions of a step
	Held   transport.Held
	Stalls []transport.Stall

	Recv                      int // of a combine
	Into, HeldBytes, Incoming []byte
}

// A wireStep is a step whose slices are parts of regions: memory that overlaps here
// overlaps there.
type wireStep struct {
	Signature transport.Signature
	Sends     []wireSend
	Recvs     []wireRecv
	Memory    [][]byte
}

type wireSend struct {
	To   []int
	Data part
}

type wireRecv struct {
	From       int
	Into, Held part
	Combine    bool
	Elem       int
	Temporal   bool
	Ordered    bool
}

// A part is a part of a region.
type part struct{ Region, At, Len int }

// toWire converts a step. Regions returns its regions.
func toWire(step *transport.Step) (w wireStep, regions [][]byte) {
	var all [][]byte
	for i := range step.Sends {
		all = append(all, step.Sends[i].Data)
	}
	for i := range step.Recvs {
		all = append(all, step.Recvs[i].Into, step.Recvs[i].Held)
	}
	at := func(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
	slices.SortFunc(all, func(a, b []byte) int { return int(int64(at(a)) - int64(at(b))) })
	for _, b := range all {
		if len(b) == 0 {
			continue
		}
		if n := len(regions); n > 0 {
			last := regions[n-1]
			if end := at(last) + uintptr(len(last)); at(b) < end {
				if more := at(b) + uintptr(len(b)); more > end {
					regions[n-1] = unsafe.Slice(unsafe.SliceData(last), more-at(last))
				}
				continue
			}
		}
		regions = append(regions, b)
	}
	find := func(b []byte) part {
		for i, r := range regions {
			if len(b) > 0 && at(r) <= at(b) && at(b) < at(r)+uintptr(len(r)) {
				return part{i, int(at(b) - at(r)), len(b)}
			}
		}
		return part{}
	}
	w = wireStep{Signature: step.Signature, Memory: regions}
	for _, s := range step.Sends {
		w.Sends = append(w.Sends, wireSend{s.To, find(s.Data)})
	}
	for _, r := range step.Recvs {
		w.Recvs = append(w.Recvs, wireRecv{r.From, find(r.Into), find(r.Held), r.Combine != nil, r.Elem, r.Temporal, r.Ordered})
	}
	return w, regions
}

// of returns the memory of a part.
func (p part) of(regions [][]byte) []byte {
	if p.Len == 0 {
		return []byte{}
	}
	return regions[p.Region][p.At : p.At+p.Len : p.At+p.Len]
}

// fromWire converts a step back.
func (w *wireStep) fromWire(combine func(recv int, into, held, incoming []byte)) transport.Step {
	step := transport.Step{Signature: w.Signature}
	for _, s := range w.Sends {
		step.Sends = append(step.Sends, transport.Send{To: s.To, Data: s.Data.of(w.Memory)})
	}
	for i, r := range w.Recvs {
		recv := transport.Recv{From: r.From, Into: r.Into.of(w.Memory), Held: r.Held.of(w.Memory), Elem: r.Elem, Temporal: r.Temporal, Ordered: r.Ordered}
		if r.Combine {
			recv.Combine = func(into, held, incoming []byte) { combine(i, into, held, incoming) }
		}
		step.Recvs = append(step.Recvs, recv)
	}
	return step
}

// A wireError is an error with what errors.Is and errors.As find in it.
type wireError struct {
	Text         string
	Kind         string // of one of package transport's types, or the text of a sentinel
	Rank, Peer   int
	Got, Want    int
	Mine, Theirs transport.Signature
	Types        [2]string
	Tagged       *transport.MessageInfo
	Inside       []*wireError
}

var sentinels = []error{
	transport.ErrClosed, transport.ErrAllLeft, transport.ErrLeft, transport.ErrLost, transport.ErrAborted, transport.ErrRevoked,
	transport.ErrPanicked, transport.ErrTwoSteps, transport.ErrLinger, context.Canceled, context.DeadlineExceeded,
}

func errorToWire(err error) *wireError {
	if err == nil {
		return nil
	}
	w := &wireError{Text: err.Error()}
	inside := func(errs ...error) {
		for _, err := range errs {
			w.Inside = append(w.Inside, errorToWire(err))
		}
	}
	switch e := err.(type) {
	case *transport.PeerError:
		w.Kind, w.Peer, w.Types[0] = "peer", e.Peer, e.Reason
		inside(e.Err)
	case *transport.MismatchError:
		w.Kind, w.Rank, w.Peer, w.Mine, w.Theirs = "mismatch", e.Rank, e.Peer, e.Mine, e.Theirs
	case *transport.SizeError:
		w.Kind, w.Peer, w.Got, w.Want = "size", e.Peer, e.Got, e.Want
	case *transport.RankError:
		w.Kind, w.Peer, w.Rank, w.Got = "rank", e.Peer, e.Rank, e.Size
	case *transport.TypeError:
		w.Kind, w.Peer, w.Types = "type", e.Peer, [2]string{e.Got, e.Want}
	case *transport.UnreceivedError:
		w.Kind, w.Rank, w.Peer, w.Mine, w.Theirs, w.Tagged = "unreceived", e.Rank, e.Peer, e.Mine, e.Theirs, e.Tagged
	case *transport.UndeliveredError:
		w.Kind, w.Rank, w.Peer, w.Got = "undelivered", e.Rank, e.Peer, e.Bytes
		inside(e.Err)
	case interface{ Unwrap() []error }:
		inside(e.Unwrap()...)
	case interface{ Unwrap() error }:
		if slices.Contains(sentinels, err) {
			w.Kind = "sentinel"
			break
		}
		inside(e.Unwrap())
	default:
		if slices.Contains(sentinels, err) {
			w.Kind = "sentinel"
		}
	}
	return w
}

// A rebuilt error stands for one of another process.
type rebuilt struct {
	text   string
	inside []error
}

func (r *rebuilt) Error() string   { return r.text }
func (r *rebuilt) Unwrap() []error { return r.inside }

func (w *wireError) error() error {
	if w == nil {
		return nil
	}
	var inside []error
	for _, i := range w.Inside {
		inside = append(inside, i.error())
	}
	switch w.Kind {
	case "sentinel":
		i := slices.IndexFunc(sentinels, func(err error) bool { return err.Error() == w.Text })
		return sentinels[i]
	case "peer":
		return &transport.PeerError{Peer: w.Peer, Err: inside[0], Reason: w.Types[0]}
	case "mismatch":
		return &transport.MismatchError{Rank: w.Rank, Peer: w.Peer, Mine: w.Mine, Theirs: w.Theirs}
	case "size":
		return &transport.SizeError{Peer: w.Peer, Got: w.Got, Want: w.Want}
	case "rank":
		return &transport.RankError{Peer: w.Peer, Rank: w.Rank, Size: w.Got}
	case "type":
		return &transport.TypeError{Peer: w.Peer, Got: w.Types[0], Want: w.Types[1]}
	case "unreceived":
		return &transport.UnreceivedError{Rank: w.Rank, Peer: w.Peer, Mine: w.Mine, Theirs: w.Theirs, Tagged: w.Tagged}
	case "undelivered":
		return &transport.UndeliveredError{Rank: w.Rank, Peer: w.Peer, Bytes: w.Got, Err: inside[0]}
	}
	return &rebuilt{w.Text, inside}
}

// A remoteContext is the context of an operation whose caller is in the process of
// the tests. It tells when something registers for its end: then the operation waits.
type remoteContext struct {
	context.Context // with the cause
	stop            context.CancelCauseFunc
	done            chan struct{}
	err             error
	waits           func()
}

func newRemoteContext(waits func()) *remoteContext {
	c := &remoteContext{done: make(chan struct{}), waits: waits}
	c.Context, c.stop = context.WithCancelCause(context.Background())
	return c
}

func (c *remoteContext) Done() <-chan struct{} { return c.done }

func (c *remoteContext) Err() error {
	select {
	case <-c.done:
		return c.err
	default:
		return nil
	}
}

func (c *remoteContext) AfterFunc(f func()) func() bool {
	c.waits()
	return context.AfterFunc(c.Context, f)
}

// end ends the context as another one has ended, for a reason that [transport.Cause] gives.
func (c *remoteContext) end(w *wireError) {
	why := w.error()
	c.err = context.Canceled
	if errors.Is(why, context.DeadlineExceeded) {
		c.err = context.DeadlineExceeded
	}
	cause := c.err
	if r, ok := why.(*rebuilt); ok && len(r.inside) > 1 {
		cause = r.inside[1]
	}
	close(c.done)
	c.stop(cause)
}
