// Package transporttest says in tests what a [transport.Endpoint] must do.
//
// [Run] is the contract: every transport passes it. [RunMail] is that of letters,
// and [RunMember] what the launcher of a job of processes wants beyond. [Faulty] wraps an endpoint
// in faults, for those who want to know what their code does when a rank is
// slow, gives up or goes away.
package transporttest

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
	"go.uber.org/goleak"
)

// Start makes the n endpoints of one fresh job; endpoint i has rank i. Run
// closes the endpoints. What else there is to end belongs in t.Cleanup.
type Start func(t *testing.T, n int) []transport.Endpoint

// patience bounds every claim: what has not come by then is a hang. No claim
// waits for it where the endpoint is right.
const patience = 30 * time.Second

// UnderRace is set where the race detector makes every byte dear.
var UnderRace bool

type claim struct {
	name string
	test func(t *testing.T, start Start)
}

// Run tests that the endpoints that start makes keep the contract of
// [transport.Endpoint], and that they leave no goroutine behind. With -short
// it leaves out the largest messages.
func Run(t *testing.T, start Start) {
	before := goleak.IgnoreCurrent()
	for _, group := range [][]claim{dataClaims, combineClaims, orderClaims, mismatchClaims, endClaims} {
		runAll(t, start, group)
	}
	if !t.Failed() {
		goleak.VerifyNone(t, before)
	}
}

func runAll(t *testing.T, start Start, claims []claim) {
	for _, c := range claims {
		t.Run(c.name, func(t *testing.T) { c.test(t, start) })
	}
}

// A job is a set of endpoints under test.
type job struct {
	*testing.T
	ctx  context.Context // ends when patience does
	ends []transport.Endpoint
}

// open starts a job of n ranks that ends with the test.
func open(t *testing.T, start Start, n int) *job {
	t.Helper()
	ends := start(t, n)
	if len(ends) != n {
		t.Fatalf("start made %d endpoints, want %d", len(ends), n)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(func() {
		for _, e := range ends {
			if err := e.Close(); err != nil {
				t.Errorf("rank %d: Close: %v", e.Rank(), err)
			}
		}
		cancel()
	})
	return &job{t, ctx, ends}
}

// A part is what one rank does in a test.
type part func(ctx context.Context, e transport.Endpoint) error

// each runs the same part on every rank at once and fails the test at the
// first error.
func (j *job) each(p part) {
	j.Helper()
	parts := make([]part, len(j.ends))
	for i := range parts {
		parts[i] = p
	}
	j.mustAll(parts...)
}

// all runs parts[i] on rank i, all at once, and returns their errors. A nil
// part does nothing.
func (j *job) all(parts ...part) []error {
	j.Helper()
	errs := make([]error, len(parts))
	var ranks sync.WaitGroup
	for i, p := range parts {
		if p != nil {
			ranks.Go(func() { errs[i] = p(j.ctx, j.ends[i]) })
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

// mustAll is all where no error is allowed.
func (j *job) mustAll(parts ...part) {
	j.Helper()
	for rank, err := range j.all(parts...) {
		if err != nil {
			j.Errorf("rank %d: %v", rank, err)
		}
	}
	if j.Failed() {
		j.FailNow()
	}
}

// until returns when cond holds.
func (j *job) until(cond func() bool) {
	j.Helper()
	for !cond() {
		if j.ctx.Err() != nil {
			j.Fatal("what is waited for never comes")
		}
		time.Sleep(100 * time.Microsecond)
	}
}

// await fails the test when wait does not return although every context of the
// test has ended.
func (j *job) await(wait func()) {
	j.Helper()
	done := make(chan struct{})
	go func() {
		wait()
		close(done)
	}()
	late := time.NewTimer(patience + patience/6)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
		stacks := make([]byte, 1<<20)
		j.Fatalf("an exchange does not even end with its context\n%s", stacks[:runtime.Stack(stacks, true)])
	}
}

// sig is the signature of most tests.
var sig = transport.Signature{Context: 0, Sequence: 1, Call: "test"}

// send is an Exchange that sends data to one rank.
func send(ctx context.Context, e transport.Endpoint, s transport.Signature, to int, data []byte) error {
	return e.Exchange(ctx, transport.Step{Signature: s, Sends: []transport.Send{{To: []int{to}, Data: data}}})
}

// recv is an Exchange that fills into from one rank.
func recv(ctx context.Context, e transport.Endpoint, s transport.Signature, from int, into []byte) error {
	return e.Exchange(ctx, transport.Step{Signature: s, Recvs: []transport.Recv{{From: from, Into: into}}})
}

// swap is an Exchange that sends one byte to a rank and awaits one from it. It
// cannot complete before the peer has done its part, on any transport.
func swap(ctx context.Context, e transport.Endpoint, s transport.Signature, peer int) error {
	return e.Exchange(ctx, transport.Step{
		Signature: s,
		Sends:     []transport.Send{{To: []int{peer}, Data: []byte{1}}},
		Recvs:     []transport.Recv{{From: peer, Into: make([]byte, 1)}},
	})
}

// pattern fills b with bytes that follow from seed, such that neighbours, pages
// and messages differ.
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
