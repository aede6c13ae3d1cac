package inproc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chorale-go/chorale/internal/leaktest"
	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/transporttest"
)

func TestMain(m *testing.M) { leaktest.VerifyTestMain(m) }

func start(_ *testing.T, n int) []transport.Endpoint { return New(n).members() }

func (j *Job) members() []transport.Endpoint {
	ends := make([]transport.Endpoint, len(j.endpoints))
	for rank := range ends {
		ends[rank] = j.Endpoint(rank)
	}
	return ends
}

// An announcement is the sender's own record of its send: the receiver's queue only links it.
const unbounded = "AnnouncementsWaitBeyondABoundAndKeepTheirOrder"

func TestEndpointsKeepTheContract(t *testing.T) {
	transporttest.Run(t, start, unbounded)
	transporttest.RunPerformance(t, start)
}

func TestEndpointsKeepTheContractInEveryOrderOfEvents(t *testing.T) {
	var seed atomic.Uint64
	transporttest.Run(t, func(t *testing.T, n int) []transport.Endpoint {
		ends := start(t, n)
		for i, e := range ends {
			ends[i] = transporttest.Faulty(e, transporttest.Faults{Seed: seed.Add(1), Delay: 20 * time.Microsecond, Shuffle: true})
		}
		return ends
	}, unbounded)
}

// run runs f on every rank of a job at once and returns the errors by rank.
func run(t *testing.T, j *Job, f func(ctx context.Context, e *Endpoint) error) []error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	errs := make([]error, len(j.endpoints))
	var ranks sync.WaitGroup
	for rank := range errs {
		ranks.Go(func() { errs[rank] = f(ctx, j.Endpoint(rank)) })
	}
	ranks.Wait()
	return errs
}

func mustRun(t *testing.T, j *Job, f func(ctx context.Context, e *Endpoint) error) {
	t.Helper()
	for rank, err := range run(t, j, f) {
		if err != nil {
			t.Fatalf("rank %d: %v", rank, err)
		}
	}
}

// swap exchanges messages of a size with a peer.
func swap(ctx context.Context, e *Endpoint, s transport.Signature, peer, size int) error {
	return e.Exchange(ctx, transport.Step{
		Signature: s,
		Sends:     []transport.Send{{To: []int{peer}, Data: make([]byte, size)}},
		Recvs:     []transport.Recv{{From: peer, Into: make([]byte, size)}},
	})
}

// The stall timeout never passes here, so only the event that a sleeping rank waits
// for wakes it.
func TestNoRankSleepsThroughWhatItWaitsFor(t *testing.T) {
	rounds := 400
	if testing.Short() {
		rounds = 60
	}
	for _, n := range []int{2, 3, 7} {
		for _, oversubscribed := range []bool{false, true} {
			j := New(n)
			j.stallTimeout = time.Hour
			if oversubscribed {
				j.spinning.resume.Store(never)
			}
			mustRun(t, j, func(ctx context.Context, e *Endpoint) error {
				defer e.Close()
				for round := range rounds {
					if err := traffic(ctx, e, round); err != nil {
						return fmt.Errorf("%d ranks, round %d: %w", n, round, err)
					}
				}
				return nil
			})
		}
	}
}

// traffic does a step that all ranks draw from the same seed: several messages
// per pair, of sizes on both sides of each protocol's limit, some to several ranks,
// some receives ordered.
func traffic(ctx context.Context, e *Endpoint, round int) error {
	sizes := []int{0, 1, 8, inlineMax, inlineMax + 1, 500, bufferedMax, bufferedMax + 1, 5000}
	random := rand.New(rand.NewPCG(1, uint64(round)))
	step := transport.Step{Signature: transport.Signature{Context: 1, Sequence: uint32(round), Call: "traffic"}}
	n := e.Size()
	for from := range n {
		for i := range random.IntN(3 * depth) {
			send := transport.Send{Data: bytes.Repeat([]byte{byte(round + 7*from + i)}, sizes[random.IntN(len(sizes))])}
			for to := range n {
				sent, ordered := random.IntN(2) == 0, random.IntN(4) == 0
				if to == from || !sent {
					continue
				}
				send.To = append(send.To, to)
				if to == e.Rank() {
					step.Recvs = append(step.Recvs, transport.Recv{From: from, Into: make([]byte, len(send.Data)), Ordered: ordered})
				}
			}
			if from == e.Rank() {
				step.Sends = append(step.Sends, send)
			}
		}
	}
	if err := e.Exchange(ctx, step); err != nil {
		return err
	}
	// Each sender numbers its messages; those for this rank are in order.
	seen := map[int]int{}
	for _, r := range step.Recvs {
		for i := range r.Into {
			k := int(r.Into[i]-byte(round+7*r.From)) & 0xff
			if k < seen[r.From] || k >= 3*depth || r.Into[i] != r.Into[0] {
				return fmt.Errorf("a byte of message %d came from rank %d after message %d", k, r.From, seen[r.From])
			}
			seen[r.From] = k
		}
	}
	return nil
}

func TestAbortEndsEveryRank(t *testing.T) {
	crash := errors.New("crash")
	for _, test := range []struct{ err, want error }{{crash, crash}, {nil, transport.ErrAborted}} {
		j := New(5)
		time.AfterFunc(2*time.Millisecond, func() { j.Abort(test.err) })
		s := transport.Signature{Context: 1, Call: "test"}
		for rank, err := range run(t, j, func(ctx context.Context, e *Endpoint) error {
			for { // around a ring until it breaks; rank 0 never comes
				if e.Rank() == 0 {
					<-time.After(4 * time.Millisecond)
				}
				if err := swap(ctx, e, s, (e.Rank()+1)%5, 8); err != nil {
					return err
				}
			}
		}) {
			if err != test.want {
				t.Errorf("rank %d: got %v, want %v", rank, err, test.want)
			}
			if err := j.Endpoint(rank).Exchange(t.Context(), transport.Step{}); err != test.want {
				t.Errorf("rank %d, later: got %v, want %v", rank, err, test.want)
			}
		}
	}
}

func TestExchangeReturnsOnlyWhenNoReceiverReadsItsMemory(t *testing.T) {
	j := New(2)
	data := bytes.Repeat([]byte{1}, 100_000)
	reading, canceled, returned := make(chan struct{}), make(chan struct{}), make(chan struct{})
	s := transport.Signature{Context: 1, Call: "test"}
	errs := run(t, j, func(ctx context.Context, e *Endpoint) error {
		if e.Rank() == 0 {
			ctx, cancel := context.WithCancel(ctx)
			go func() {
				<-reading
				cancel()
				close(canceled)
			}()
			defer close(returned)
			err := e.Exchange(ctx, transport.Step{Signature: s, Sends: []transport.Send{{To: []int{1}, Data: data}}})
			clear(data)
			return err
		}
		into := make([]byte, len(data))
		return e.Exchange(ctx, transport.Step{Signature: s, Recvs: []transport.Recv{{
			From: 0, Into: into, Held: into, Elem: 1,
			Combine: func(into, held, incoming []byte) {
				close(reading)
				<-canceled
				select {
				case <-returned:
					t.Error("Exchange returned while its message was read")
				case <-time.After(20 * time.Millisecond):
				}
				copy(into, incoming)
			},
		}}})
	})
	if errs[0] != nil && !errors.Is(errs[0], context.Canceled) {
		t.Errorf("rank 0: %v", errs[0])
	}
	if errs[1] != nil {
		t.Errorf("rank 1: %v", errs[1])
	}
}

func TestACombineThatPanicsEndsItsRankAlone(t *testing.T) {
	for _, size := range []int{8, 500, 100_000} {
		j := New(2)
		s := transport.Signature{Context: 1, Call: "test"}
		errs := run(t, j, func(ctx context.Context, e *Endpoint) (err error) {
			if e.Rank() == 0 {
				defer func() {
					if v := recover(); v != "oh" {
						err = fmt.Errorf("recovered %v", v)
					}
				}()
			}
			into := make([]byte, size)
			return e.Exchange(ctx, transport.Step{
				Signature: s,
				Sends:     []transport.Send{{To: []int{1 - e.Rank()}, Data: make([]byte, size)}},
				Recvs: []transport.Recv{{From: 1 - e.Rank(), Into: into, Held: into, Elem: 1, Combine: func(_, _, _ []byte) {
					if e.Rank() == 0 {
						panic("oh")
					}
				}}},
			})
		})
		if errs[0] != nil {
			t.Errorf("%d bytes: rank 0: %v", size, errs[0])
		}
		// Rank 1 may have completed its step by then.
		if errs[1] != nil && !errors.Is(errs[1], transport.ErrAborted) {
			t.Errorf("%d bytes: rank 1: %v", size, errs[1])
		}
		if err := swap(t.Context(), j.Endpoint(0), s, 1, 8); err != transport.ErrPanicked {
			t.Errorf("%d bytes: afterwards: got %v, want %v", size, err, transport.ErrPanicked)
		}
	}
}

func TestTwoStepsOfOneContextAtATimeAreAnError(t *testing.T) {
	j := New(2)
	s := transport.Signature{Call: "test"}
	errs := make(chan error, 2)
	for range cap(errs) {
		go func() { errs <- swap(t.Context(), j.Endpoint(0), s, 1, 8) }()
	}
	for range cap(errs) {
		if err := <-errs; err != transport.ErrTwoSteps {
			t.Errorf("got %v, want %v", err, transport.ErrTwoSteps)
		}
	}
}

func TestReleasedContextsLeaveNothing(t *testing.T) {
	const n = 4
	j := New(n)
	mustRun(t, j, func(ctx context.Context, e *Endpoint) error {
		for i := range 1000 {
			s := transport.Signature{Context: uint32(i), Call: "test"}
			for d := 1; d < n; d *= 2 {
				if err := swap(ctx, e, s, e.Rank()^d, 8); err != nil {
					return err
				}
			}
		}
		return nil
	})
	for rank := range n {
		for i := range 1000 {
			j.Endpoint(rank).Release(uint32(i))
		}
		if left := len(j.Endpoint(rank).comms); left > 0 {
			t.Errorf("rank %d: %d contexts are left", rank, left)
		}
	}
	if len(j.links) > 0 {
		t.Errorf("%d links are left", len(j.links))
	}
}

// counted is a context that counts how often its AfterFunc is called.
type counted struct {
	context.Context
	registered *int
}

// Value hides the wrapped context, whose own AfterFunc would be called otherwise.
func (c counted) Value(any) any { return nil }

func (c counted) AfterFunc(f func()) func() bool {
	*c.registered++
	return context.AfterFunc(c.Context, f)
}

func TestAContextIsRegisteredOnce(t *testing.T) {
	j := New(2)
	j.spinning.resume.Store(never) // waiting ranks sleep at once
	registered := make([]int, 2)
	mustRun(t, j, func(ctx context.Context, e *Endpoint) error {
		ctx = counted{ctx, &registered[e.Rank()]}
		for i := range 200 {
			if err := swap(ctx, e, transport.Signature{Context: 1, Sequence: uint32(i), Call: "test"}, 1-e.Rank(), 8); err != nil {
				return err
			}
		}
		return nil
	})
	for rank, n := range registered {
		if n > 1 {
			t.Errorf("rank %d: registered %d times", rank, n)
		}
	}
}

func TestTheSteadyStateAllocatesNothing(t *testing.T) { testAllocations(t, false) }

// A rank that waits for long compares its call with those of its peers.
func TestAStallAllocatesNothing(t *testing.T) { testAllocations(t, true) }

func testAllocations(t *testing.T, stalls bool) {
	for _, n := range []int{2, 8} {
		for _, size := range []int{0, 8, 1000, 100_000} {
			const rounds = 100
			var allocs float64
			j := New(n)
			if stalls {
				j.stallTimeout = time.Microsecond
			}
			ctx, cancel := context.WithCancel(t.Context())
			var ranks sync.WaitGroup
			begin := make(chan struct{}, n)
			done := make(chan error, n)
			for rank := range n {
				ranks.Go(func() {
					e := j.Endpoint(rank)
					defer e.Close()
					f := doubling(ctx, e, size, func(into, _, incoming []byte) { copy(into, incoming) })
					for round := 0; ; {
						if _, more := <-begin; !more {
							return
						}
						var err error
						for i := 0; i < rounds && err == nil; i++ {
							err = f(round)
							round++
						}
						done <- err
					}
				})
			}
			allocs = testing.AllocsPerRun(3, func() {
				for range n {
					begin <- struct{}{}
				}
				for range n {
					if err := <-done; err != nil {
						t.Error(err)
					}
				}
			})
			close(begin)
			ranks.Wait()
			cancel()
			// The runtime allocates a few times, for example for a thread.
			if allocs > rounds/10 {
				t.Errorf("%d ranks, %d bytes: %v allocations in %d calls", n, size, allocs, rounds)
			}
		}
	}
}

// TestManyRanks bounds the memory of a job of many ranks: a pair that exchanges no
// messages may cost nothing.
func TestManyRanks(t *testing.T) {
	j := New(manyRanks)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	mustRun(t, j, func(ctx context.Context, e *Endpoint) error { return dissemination(ctx, e, 1) })
	runtime.ReadMemStats(&after)
	perRank := int64(after.Sys-before.Sys) / manyRanks
	t.Logf("%d bytes per rank", perRank)
	if limit := int64(60 << 10); perRank > limit {
		t.Errorf("%d bytes per rank, want at most %d", perRank, limit)
	}
}

// dissemination is a barrier of ⌈log p⌉ steps: 14 for 10,000 ranks.
func dissemination(ctx context.Context, e *Endpoint, sequence int) error {
	n := e.Size()
	for d := 1; d < n; d *= 2 {
		err := e.Exchange(ctx, transport.Step{
			Signature: transport.Signature{Context: 1, Sequence: uint32(sequence), Call: "barrier algorithm=dissemination"},
			Sends:     []transport.Send{{To: []int{(e.Rank() + d) % n}, Data: make([]byte, 8)}},
			Recvs:     []transport.Recv{{From: (e.Rank() + n - d) % n, Into: make([]byte, 8)}},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// A rank may look for unreceived messages, and leave, just before and after one arrives.
func TestAMessageThatArrivesWhileItsReceiverLeavesIsFoundInTheEnd(t *testing.T) {
	for _, size := range []int{0, 8, 4 << 10} {
		j := New(2)
		zero, one := j.Endpoint(0), j.Endpoint(1)
		if err := zero.CheckUnreceived(); err != nil {
			t.Fatal(err)
		}
		if err := one.Send(t.Context(), 0, transport.Match{Tag: 3}, "byte", make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		zero.Close()
		one.Close()
		var unreceived *transport.UnreceivedError
		if rank, err := j.CheckUnreceived(); rank != 0 || !errors.As(err, &unreceived) || unreceived.Rank != 0 || unreceived.Peer != 1 || unreceived.Tagged == nil {
			t.Errorf("%d bytes: %v, want a message from rank 1 that rank 0 has not received", size, err)
		}
	}
}
