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

// grace bounds how long a test waits for a registration.
const grace = 10 * time.Millisecond

// UntilWaiting returns when an operation under the context waits. An operation that
// selects on Done, or that never sleeps, registers nothing: UntilWaiting returns
// after 10 ms at the latest, and a test must pass in this case too.
func (o *Observed) UntilWaiting() { o.untilWaiting(nil) }

func (o *Observed) untilWaiting(returned <-chan struct{}) {
	select {
	case <-o.watched:
	case <-returned:
	case <-time.After(grace):
	}
}

// Begin calls f in a goroutine, under a context that ends with ctx. It returns when
// f waits, in the sense of [Observed.UntilWaiting], or has returned. Result yields
// the error of f.
func Begin(ctx context.Context, f func(ctx context.Context) error) (result <-chan error) {
	o := Observe(ctx)
	done, returned := make(chan error, 1), make(chan struct{})
	go func() {
		done <- f(o)
		close(returned)
	}()
	o.untilWaiting(returned)
	return done
}
