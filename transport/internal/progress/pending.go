package progress

import (
	"context"

	"github.com/chorale-go/chorale/transport"
)

var _ transport.PendingStep = (*Op)(nil)

// Start begins an operation that its caller polls, and calls start for it. The caller
// holds the lock, and calls Wait in the end.
func (e *Engine) Start(ctx context.Context, start func(o *Op)) *Op {
	o := e.Begin(ctx)
	started := false
	defer func() {
		if !started {
			e.Leave(o)
		}
	}()
	start(o)
	e.transport.BeforeWait(o)
	started = true
	return o
}

// Poll implements [transport.PendingStep].
func (o *Op) Poll() (moved, over bool) {
	e := o.engine
	e.Lock()
	defer e.Unlock()
	if !o.over && !e.owner.taken {
		e.Guard(func() { moved = e.transport.Advance() })
	}
	return moved, o.over
}

// Wait implements [transport.PendingStep].
func (o *Op) Wait() error {
	e := o.engine
	e.Lock()
	defer e.Unlock()
	defer e.Leave(o)
	return o.Await()
}
