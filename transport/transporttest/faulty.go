package transporttest

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/chorale-go/chorale/transport"
)

// Faults says what goes wrong with an endpoint. The zero value is none.
type Faults struct {
	// Seed is where the random choices of Delay and Shuffle begin.
	Seed uint64
	// Delay is the longest time by which an Exchange begins late; each
	// begins late by a random part of it.
	Delay time.Duration
	// Shuffle hands over the sends and receives of a step in a random one
	// of the orders that mean the same.
	Shuffle bool
	// FailAt is the Exchange, counted from 1 over all contexts, at which the
	// endpoint gives up with Err: its peers hear that it has. 0 is never.
	FailAt int
	Err    error
	// CutAt is the Exchange, counted likewise, during which Cut is called,
	// after another random part of Delay. A nil Cut closes the endpoint.
	CutAt int
	Cut   func()
}

// Faulty returns e with faults. Without faults it is as good as e, and keeps
// the contract if e does.
func Faulty(e transport.Endpoint, f Faults) transport.Endpoint {
	return &faulty{Endpoint: e, faults: f, random: rand.New(rand.NewPCG(f.Seed, uint64(e.Rank())))}
}

type faulty struct {
	transport.Endpoint
	faults Faults

	mu     sync.Mutex // guards what follows
	calls  int
	random *rand.Rand
	failed error
}

func (f *faulty) Exchange(ctx context.Context, step transport.Step) error {
	f.mu.Lock()
	f.calls++
	call, failed := f.calls, f.failed
	late, later := f.wait(), f.wait()
	if f.faults.Shuffle {
		step = shuffle(f.random, step)
	}
	f.mu.Unlock()
	if failed != nil {
		return failed
	}
	if late > 0 {
		select {
		case <-time.After(late):
		case <-ctx.Done():
		}
	}
	switch call {
	case f.faults.FailAt:
		return f.fail(ctx, step)
	case f.faults.CutAt:
		var cut sync.WaitGroup
		cut.Go(func() { f.cut(later) })
		defer cut.Wait()
	}
	return f.Endpoint.Exchange(ctx, step)
}

// wait draws a random part of Delay.
func (f *faulty) wait() time.Duration {
	if f.faults.Delay <= 0 {
		return 0
	}
	return time.Duration(f.random.Int64N(int64(f.faults.Delay)))
}

// fail ends the endpoint's part by way of a context that has ended.
func (f *faulty) fail(ctx context.Context, step transport.Step) error {
	ended, cancel := context.WithCancelCause(ctx)
	cancel(f.faults.Err)
	err := f.Endpoint.Exchange(ended, step)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed = f.faults.Err; f.failed == nil {
		f.failed = err
	}
	return f.failed
}

func (f *faulty) cut(after time.Duration) {
	time.Sleep(after)
	if f.faults.Cut != nil {
		f.faults.Cut()
	} else {
		f.Endpoint.Close()
	}
}

// shuffle returns a step that means the same as step in another order. Sends
// stay as they are among those that share a receiver, receives among those
// that share a sender, and a receive in turn keeps its place behind all that
// were listed before it.
func shuffle(random *rand.Rand, step transport.Step) transport.Step {
	step.Sends = reorder(random, step.Sends, func(a, b transport.Send) bool {
		return slices.ContainsFunc(a.To, func(to int) bool { return slices.Contains(b.To, to) })
	})
	step.Recvs = reorder(random, step.Recvs, func(a, b transport.Recv) bool {
		return a.From == b.From || a.Ordered || b.Ordered
	})
	return step
}

// reorder returns the elements of s in a random order among those that keep
// every two tied elements in theirs.
func reorder[T any](random *rand.Rand, s []T, tied func(a, b T) bool) []T {
	s = slices.Clone(s)
	for i := range s {
		// Let the element sink by a random distance past what it is not
		// tied to.
		for k := i; k > 0 && !tied(s[k-1], s[k]) && random.IntN(3) > 0; k-- {
			s[k-1], s[k] = s[k], s[k-1]
		}
	}
	return s
}
