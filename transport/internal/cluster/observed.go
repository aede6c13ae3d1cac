package cluster

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// An Observed context tells a test when an operation under it waits: an endpoint
// registers for the end of the context (AfterFunc) before it sleeps.
type Observed struct {
	context.Context
	watchers atomic.Int32
	once     sync.Once
	watched  chan struct{} // closed at the first registration
}

// Observe returns an observed context that ends with ctx.
func Observe(ctx context.Context) *Observed {
	return &Observed{Context: ctx, watched: make(chan struct{})}
}

// Value returns nil, so that package context registers here and not with the
// context inside.
func (o *Observed) Value(any) any { return nil }

// AfterFunc implements the method that [context.AfterFunc] looks for.
func (o *Observed) AfterFunc(f func()) func() bool {
	o.watchers.Add(1)
	o.once.Do(func() { close(o.watched) })
	stop := context.AfterFunc(o.Context, f)
	return func() bool {
		stopped := stop()
		if stopped {
			o.watchers.Add(-1)
		}
		return stopped
	}
}

// Watchers returns how many functions are registered for the end of the context.
func (o *Observed) Watchers() int { return int(o.watchers.Load()) }

// grace bounds how long UntilWaiting waits for a registration.
const grace = 10 * time.Millisecond

// UntilWaiting returns when an operation under the context has registered for its
// end, as it does before it sleeps. An operation that selects on Done registers
// nothing, nor does one that never sleeps. UntilWaiting then returns after 10 ms,
// so a claim must also hold for an operation that has not begun to wait.
func (o *Observed) UntilWaiting() {
	select {
	case <-o.watched:
	case <-time.After(grace):
	}
}
