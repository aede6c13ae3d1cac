package transporttest

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/chorale-go/chorale/transport"
)

// Faults are the faults of an endpoint. The zero value injects none.
type Faults struct {
	// Seed seeds the random choices of Delay and Shuffle.
	Seed uint64
	// Delay is the longest delay of an Exchange. Each begins after a random part
	// of it.
	Delay time.Duration
	// Shuffle puts the sends and receives of a step into a random order that is
	// equivalent to the order listed.
	Shuffle bool
	// FailAt is the number of the Exchange that fails with Err. It counts from 1
	// over all contexts; 0 is none. Peers get ErrAborted, and every later Exchange
	// returns Err.
	FailAt int
	Err    error
	// CutAt is the number of the Exchange during which Cut is called, after another
	// random part of Delay. It counts as FailAt does. A nil Cut closes the endpoint.
	CutAt int
	Cut   func()
}

// Faulty returns an endpoint that injects the faults into Exchange. Every other
// method, those of tagged messages among them, is the one of e and neither counts
// nor fails. Without faults the endpoint keeps the contract if e does. It does not
// implement [transport.LossSink].
func Faulty(e transport.Endpoint, f Faults) transport.Endpoint {
	return &faulty{Endpoint: e, faults: f, random: rand.New(rand.NewPCG(f.Seed, uint64(e.Rank())))}
}

type faulty struct {
	transport.Endpoint
	faults Faults

	mu     sync.Mutex // guards the fields below
	calls  int        // Exchanges so far
	random *rand.Rand
	failed error
}

func (f *faulty) Exchange(ctx context.Context, step transport.Step) error {
	f.mu.Lock()
	f.calls++
	call, failed := f.calls, f.failed
	delay, cutDelay := f.randomDelay(), f.randomDelay()
	if f.faults.Shuffle {
		step = shuffle(f.random, step)
	}
	f.mu.Unlock()
	if failed != nil {
		return failed
	}
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-ctx.Done():
		}
	}
	switch call {
	case f.faults.FailAt:
		return f.fail(ctx, step)
	case f.faults.CutAt:
		var cut sync.WaitGroup
		cut.Go(func() { f.cut(cutDelay) })
		defer cut.Wait()
	}
	return f.Endpoint.Exchange(ctx, step)
}

// randomDelay returns a random part of Delay.
func (f *faulty) randomDelay() time.Duration {
	if f.faults.Delay <= 0 {
		return 0
	}
	return time.Duration(f.random.Int64N(int64(f.faults.Delay)))
}

// fail ends the endpoint's part in the job by an Exchange under an ended context.
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

func (f *faulty) cut(delay time.Duration) {
	time.Sleep(delay)
	if f.faults.Cut != nil {
		f.faults.Cut()
	} else {
		f.Endpoint.Close()
	}
}

// shuffle returns an equivalent step in another order. Two sends to one rank keep
// their order, as do two receives from one rank, and an ordered receive and any
// other.
func shuffle(random *rand.Rand, step transport.Step) transport.Step {
	step.Sends = reorder(random, step.Sends, func(a, b transport.Send) bool {
		return slices.ContainsFunc(a.To, func(to int) bool { return slices.Contains(b.To, to) })
	})
	step.Recvs = reorder(random, step.Recvs, func(a, b transport.Recv) bool {
		return a.From == b.From || a.Ordered || b.Ordered
	})
	return step
}

// reorder returns the elements of s in a random order. Every two tied elements keep
// theirs.
func reorder[T any](random *rand.Rand, s []T, tied func(a, b T) bool) []T {
	s = slices.Clone(s)
	for i := range s {
		// Move the element forward by a random distance, but past no element that
		// it is tied to.
		for k := i; k > 0 && !tied(s[k-1], s[k]) && random.IntN(3) > 0; k-- {
			s[k-1], s[k] = s[k], s[k-1]
		}
	}
	return s
}
