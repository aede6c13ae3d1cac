// Package transporttest tests that a transport keeps the contract of
// [transport.Endpoint].
//
// [Run] is the contract: every transport passes it. [RunLost] adds the claims for
// endpoints that implement [transport.LossSink], and [RunPerformance] those that the
// transports of this module keep beyond the contract. [Faulty] wraps an endpoint
// and injects faults, for tests of code that uses endpoints.
package transporttest

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chorale-go/chorale/internal/leaktest"
	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/cluster"
	"go.uber.org/goleak"
)

// Start makes the n endpoints of a fresh job; endpoint i has rank i. The suite
// closes the endpoints. Start registers whatever else must end in t.Cleanup.
type Start func(t *testing.T, n int) []transport.Endpoint

// timeout bounds every claim: an operation that takes longer hangs. No claim waits
// for it if the endpoint is right.
const timeout = 30 * time.Second

// UnderRace reports whether the race detector is on, which makes each byte
// expensive.
var UnderRace bool

type claim struct {
	name string
	test func(t *testing.T, start Start)
}

// contract returns the claims of the contract.
func contract() []claim {
	return slices.Concat(dataClaims, combineClaims, orderClaims, unexpectedClaims,
		mismatchClaims, stallClaims, failClaims, revokeClaims, endClaims, leavingClaims, memoryClaims, heldClaims, taggedClaims, startedClaims, queueClaims, anySourceClaims, allocClaims)
}

// Run tests that the endpoints that start makes keep the contract of
// [transport.Endpoint], and that they leave no goroutine behind. With -short it
// leaves out the largest messages. Run skips the claims named in except; a caller
// says beside each of these names why its endpoints do not keep the claim. Claims that sleep
// are parallel subtests of t, so that start is called by several goroutines at a time
// unless the tests run with -parallel 1.
func Run(t *testing.T, start Start, except ...string) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { // when the parallel claims are tested, too
		if !t.Failed() {
			if err := leaktest.Find(before); err != nil {
				t.Error(err)
			}
		}
	})
	runClaims(t, start, contract(), except)
}

func runClaims(t *testing.T, start Start, claims []claim, except []string) {
	for _, name := range except {
		if !slices.ContainsFunc(claims, func(c claim) bool { return c.name == name }) {
			t.Errorf("no claim %s to skip", name)
		}
	}
	for _, c := range claims {
		if !slices.Contains(except, c.name) {
			t.Run(c.name, func(t *testing.T) { c.test(t, start) })
		}
	}
}

// RunPerformance tests that the endpoints that start makes allocate nothing in the
// steady state of a collective and complete short messages early. The contract asks
// for neither. RunPerformance skips the claims named in except, as [Run] does.
func RunPerformance(t *testing.T, start Start, except ...string) {
	runClaims(t, start, performanceClaims, except)
}

// A job is a set of endpoints under test.
type job struct {
	*testing.T
	ctx  context.Context // ends after timeout
	ends []transport.Endpoint
}

// open starts a job of n ranks that ends with the test.
func open(t *testing.T, start Start, n int) *job {
	t.Helper()
	ends := start(t, n)
	if len(ends) != n {
		t.Fatalf("start made %d endpoints, want %d", len(ends), n)
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	t.Cleanup(func() {
		var closed sync.WaitGroup // at once: a Close may wait until its peers leave
		for _, e := range ends {
			closed.Go(func() {
				if err := e.Close(); err != nil {
					t.Errorf("rank %d: Close: %v", e.Rank(), err)
				}
			})
		}
		closed.Wait()
		cancel()
	})
	return &job{t, ctx, ends}
}

// A rankFunc runs on one rank of a test.
type rankFunc func(ctx context.Context, e transport.Endpoint) error

// each runs f on every rank at once and fails the test if one returns an error.
func (j *job) each(f rankFunc) {
	j.Helper()
	fs := make([]rankFunc, len(j.ends))
	for i := range fs {
		fs[i] = f
	}
	j.mustAll(fs...)
}

// all runs fs[i] on rank i, all at once, and returns their errors. A nil function
// does nothing.
func (j *job) all(fs ...rankFunc) []error {
	j.Helper()
	errs := make([]error, len(fs))
	var ranks sync.WaitGroup
	for i, f := range fs {
		if f != nil {
			ranks.Go(func() { errs[i] = f(j.ctx, j.ends[i]) })
		}
	}
	j.await(ranks.Wait)
	for rank, err := range errs {
		if err != nil && j.ctx.Err() != nil {
			j.Errorf("rank %d hung until its context ended: %v", rank, err)
		}
	}
	if j.ctx.Err() != nil {
		j.FailNow()
	}
	return errs
}

// mustAll runs fs as all does and fails the test if one returns an error.
func (j *job) mustAll(fs ...rankFunc) {
	j.Helper()
	j.noErrors(j.all(fs...))
}

// noErrors fails the test if one of the errors, by rank, is not nil.
func (j *job) noErrors(errs []error) {
	j.Helper()
	for rank, err := range errs {
		if err != nil {
			j.Errorf("rank %d: %v", rank, err)
		}
	}
	if j.Failed() {
		j.FailNow()
	}
}

// until returns when cond holds. It polls cond every 100 µs.
func (j *job) until(cond func() bool) {
	j.Helper()
	for !cond() {
		if j.ctx.Err() != nil {
			j.Fatal("a condition does not come true")
		}
		time.Sleep(100 * time.Microsecond)
	}
}

// untilArrived returns when a message of a step has arrived at e that no Exchange
// has received. No Exchange of e may be in progress.
func (j *job) untilArrived(e transport.Endpoint) {
	j.Helper()
	j.until(func() bool {
		var unreceived *transport.UnreceivedError
		return errors.As(e.CheckUnreceived(), &unreceived) && unreceived.Tagged == nil
	})
}

// await fails the test if wait does not return although every context of the test
// has ended.
func (j *job) await(wait func()) {
	j.Helper()
	done := make(chan struct{})
	go func() {
		wait()
		close(done)
	}()
	late := time.NewTimer(timeout + timeout/6)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
		stacks := make([]byte, 1<<20)
		j.Fatalf("an operation does not return although its context has ended\n%s", stacks[:runtime.Stack(stacks, true)])
	}
}

// sig is the signature of most tests.
var sig = transport.Signature{Context: 0, Sequence: 1, Call: "test"}

// send is an Exchange that sends data to one rank.
func send(ctx context.Context, e transport.Endpoint, s transport.Signature, to int, data []byte) error {
	return e.Exchange(ctx, transport.Step{Signature: s, Sends: []transport.Send{{To: []int{to}, Data: data}}})
}

var (
	recv        = cluster.Receive
	swap        = cluster.Swap
	checkReason = cluster.CheckPeer
)

// pattern fills b with bytes that follow from seed. Adjacent bytes, pages and
// messages differ.
func pattern(b []byte, seed int) []byte {
	head := b[:min(len(b), 8191)]
	x := uint32(seed)*2654435761 + 1
	for i := range head {
		x = x*1664525 + 1013904223
		head[i] = byte(x >> 24)
	}
	for n := len(head); n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
	return b
}
