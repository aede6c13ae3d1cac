package transporttest

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/chorale-go/chorale/transport"
)

// Faults are the faults of an endpoint. The zero value injects none. An operation is
// a call of Exchange, Send, Recv, StartSend, StartRecv, TryRecv or Probe; they are counted from 1, over all
// contexts, in the order in which they begin.
type Faults struct {
	// Seed seeds the random choices of Delay and Shuffle.
	Seed uint64
	// Delay is the longest delay of an operation. Each begins after a random part
	// of it, and lets other goroutines run until then.
	Delay time.Duration
	// Shuffle puts the sends and receives of a step into a random order that is
	// equivalent to the order listed.
	Shuffle bool
	// FailAt is the number of the operation that fails with Err; 0 is none. Peers get
	// ErrAborted, and every later operation returns Err, which is not nil.
	FailAt int
	Err    error
	// CutAt is the number of the operation during which Cut is called, after another
	// random part of Delay; 0 is none. A nil Cut closes the endpoint.
	CutAt int
	Cut   func()
}

// Faulty returns an endpoint that injects the faults into its operations. Every other
// method is the one of e. Without faults the endpoint keeps the contract if e does. It
// does not implement [transport.LossSink].
func Faulty(e transport.Endpoint, f Faults) transport.Endpoint {
	return &faulty{Endpoint: e, faults: f, random: rand.New(rand.NewPCG(f.Seed, uint64(e.Rank())))}
}

type faulty struct {
	transport.Endpoint
	faults Faults

	mu         sync.Mutex // guards the fields below
	operations int        // so far
	random     *rand.Rand
	failed     error
}

func (f *faulty) Exchange(ctx context.Context, step transport.Step) error {
	end, err := f.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	return f.Endpoint.Exchange(ctx, f.shuffled(step))
}

func (f *faulty) Send(ctx context.Context, to int, m transport.Match, typeName string, data []byte) error {
	end, err := f.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	return f.Endpoint.Send(ctx, to, m, typeName, data)
}

func (f *faulty) Recv(ctx context.Context, from int, m transport.Match, typeName string, into []byte) (transport.MessageInfo, error) {
	end, err := f.begin(ctx)
	if err != nil {
		return transport.MessageInfo{}, err
	}
	defer end()
	return f.Endpoint.Recv(ctx, from, m, typeName, into)
}

func (f *faulty) StartSend(ctx context.Context, r *transport.Request, to int, m transport.Match, typeName string, data []byte) {
	end, err := f.begin(ctx)
	if err != nil {
		r.Finish(transport.MessageInfo{}, err)
		return
	}
	defer end()
	f.Endpoint.StartSend(ctx, r, to, m, typeName, data)
}

func (f *faulty) StartRecv(ctx context.Context, r *transport.Request, from int, m transport.Match, typeName string, into []byte) {
	end, err := f.begin(ctx)
	if err != nil {
		r.Finish(transport.MessageInfo{}, err)
		return
	}
	defer end()
	f.Endpoint.StartRecv(ctx, r, from, m, typeName, into)
}

func (f *faulty) TryRecv(ctx context.Context, from int, m transport.Match, typeName string, into []byte) (transport.MessageInfo, bool, error) {
	end, err := f.begin(ctx)
	if err != nil {
		return transport.MessageInfo{}, false, err
	}
	defer end()
	return f.Endpoint.TryRecv(ctx, from, m, typeName, into)
}

func (f *faulty) Probe(ctx context.Context, from int, m transport.Match, wait bool) (transport.MessageInfo, bool, error) {
	end, err := f.begin(ctx)
	if err != nil {
		return transport.MessageInfo{}, false, err
	}
	defer end()
	return f.Endpoint.Probe(ctx, from, m, wait)
}

// shortest is the shortest delay for which timers are exact enough.
const shortest = time.Millisecond

// wait returns after a delay, or when ctx ends.
func wait(ctx context.Context, delay time.Duration) {
	if delay >= shortest {
		select {
		case <-time.After(delay):
		case <-ctx.Done():
		}
		return
	}
	for begin := time.Now(); time.Since(begin) < delay; {
		runtime.Gosched()
	}
}

// begin begins an operation: it delays it, and returns the error if it fails. Otherwise
// the operation calls end when it is over.
func (f *faulty) begin(ctx context.Context) (end func(), err error) {
	f.mu.Lock()
	f.operations++
	number, failed := f.operations, f.failed
	delay, cutDelay := f.randomDelay(), f.randomDelay()
	f.mu.Unlock()
	if failed != nil {
		return nil, failed
	}
	wait(ctx, delay)
	switch number {
	case f.faults.FailAt:
		return nil, f.fail()
	case f.faults.CutAt:
		var cut sync.WaitGroup
		cut.Go(func() { f.cut(cutDelay) })
		return cut.Wait, nil
	}
	return func() {}, nil
}

// randomDelay returns a random part of Delay. The endpoint is locked.
func (f *faulty) randomDelay() time.Duration {
	if f.faults.Delay <= 0 {
		return 0
	}
	return time.Duration(f.random.Int64N(int64(f.faults.Delay)))
}

// fail ends the endpoint's part in the job.
func (f *faulty) fail() error {
	f.Endpoint.Abort(f.faults.Err)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed = f.faults.Err
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

// shuffled returns an equivalent step in another order if Shuffle is set.
func (f *faulty) shuffled(step transport.Step) transport.Step {
	if !f.faults.Shuffle {
		return step
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return shuffle(f.random, step)
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
