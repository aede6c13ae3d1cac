package progress

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/chorale-go/chorale/transport"
)

// StartLeaving begins to close the endpoint: operations are refused from here on, and
// those end that can end alone. It returns false if Close was called before.
func (e *Engine) StartLeaving() bool {
	if e.end.leaving {
		return false
	}
	e.end.leaving, e.failing = true, true
	e.finishEach(transport.ErrClosed, func(m *Message) bool { return !m.committed() })
	for _, o := range e.ops {
		if o.kind == probeOp {
			o.Finish(transport.ErrClosed)
		}
	}
	return true
}

// bound reports whether something is in progress that cannot end alone: a peer may use
// its memory.
func (e *Engine) bound() bool {
	return slices.ContainsFunc(e.ops, func(o *Op) bool { return !o.over && o.kind == stepOp }) ||
		slices.ContainsFunc(e.messages.inProgress, func(m *Message) bool { return m.phase == committed })
}

// Linger returns when Flushed is called: every message that was sent and completed is
// where its receiver finds it. It gives up after d, or when the endpoint fails
// meanwhile, and returns why.
//
// Linger does not wait while a goroutine is in an Exchange, or transfers a tagged message.
// Such an operation has to end, and its memory may be written again then. Only the end
// of this endpoint's part in the job keeps peers from reading there.
func (e *Engine) Linger(d time.Duration) error {
	if err := e.MayLinger(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), d, transport.ErrLinger)
	defer cancel()
	err := e.AwaitFlush(ctx)
	if errors.Is(err, transport.ErrLinger) {
		err = transport.ErrLinger
	}
	return err
}

// MayLinger returns why an endpoint that leaves does not wait for its receivers, or nil.
func (e *Engine) MayLinger() error {
	if e.end.err == nil && e.bound() {
		return transport.ErrClosed
	}
	return e.end.err
}

// Close closes the endpoint: it tells the peers, calls flush, if not nil, and returns
// when every operation has left.
func (e *Engine) Close(flush func()) {
	e.end.leaving, e.end.closed, e.failing = true, true, true
	e.Fail(transport.ErrClosed)
	if flush != nil {
		flush()
	}
	for len(e.ops) > 0 {
		e.end.left.Wait()
	}
	for _, w := range e.watches {
		w.stop()
	}
	e.watches = nil
}
