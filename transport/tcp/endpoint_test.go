package tcp

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
)

// sig is the signature of most tests.
var sig = transport.Signature{Context: 1, Sequence: 1, Call: "test"}

// job makes a job of n ranks in this process that ends with the test.
func job(t testing.TB, n int) []*Endpoint {
	t.Helper()
	ends, err := Loopback(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, e := range ends {
			e.Close()
		}
	})
	return ends
}

// each runs a part on every rank at once and fails the test at the first error.
func each(t testing.TB, ends []*Endpoint, part func(e *Endpoint) error) {
	t.Helper()
	errs := make([]error, len(ends))
	var ranks sync.WaitGroup
	for i, e := range ends {
		ranks.Go(func() { errs[i] = part(e) })
	}
	ranks.Wait()
	for rank, err := range errs {
		if err != nil {
			t.Fatalf("rank %d: %v", rank, err)
		}
	}
}

func send(e transport.Endpoint, s transport.Signature, to int, data []byte) error {
	return e.Exchange(context.Background(), transport.Step{Signature: s, Sends: []transport.Send{{To: []int{to}, Data: data}}})
}

func receive(ctx context.Context, e transport.Endpoint, s transport.Signature, from int, into []byte) error {
	return e.Exchange(ctx, transport.Step{Signature: s, Recvs: []transport.Recv{{From: from, Into: into}}})
}

func swap(ctx context.Context, e transport.Endpoint, s transport.Signature, peer int) error {
	return e.Exchange(ctx, transport.Step{
		Signature: s,
		Sends:     []transport.Send{{To: []int{peer}, Data: make([]byte, 8)}},
		Recvs:     []transport.Recv{{From: peer, Into: make([]byte, 8)}},
	})
}

// checkPeer tests that err says of a peer what became of it, and holds a text.
func checkPeer(t *testing.T, err error, peer int, what error, text string) {
	t.Helper()
	var e *transport.PeerError
	if !errors.As(err, &e) || e.Peer != peer || !errors.Is(err, what) || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v, want %v", err, &transport.PeerError{Peer: peer, Err: what, Reason: text})
	}
}

// until returns when cond holds for the endpoint.
func until(e *Endpoint, cond func() bool) {
	for {
		e.lock()
		holds := cond()
		e.mu.Unlock()
		if holds {
			return
		}
		time.Sleep(100 * time.Microsecond)
	}
}

func TestTooLongACallIsAnError(t *testing.T) {
	ends := job(t, 2)
	long := sig
	long.Call = strings.Repeat("x", callMax)
	each(t, ends, func(e *Endpoint) error { return swap(context.Background(), e, long, 1-e.Rank()) })
	long.Call += "x"
	if err := swap(context.Background(), ends[0], long, 1); err == nil || !strings.Contains(err.Error(), "4097 bytes") {
		t.Errorf("got %v", err)
	}
}

func TestAConfigIsChecked(t *testing.T) {
	for _, c := range []Config{{}, {Rank: 1, Size: 1}, {Rank: -1, Size: 2}, {Size: 2}} {
		if e, err := New(c); err == nil {
			e.Close()
			t.Errorf("New(%+v) makes an endpoint", c)
		}
	}
	e, err := New(Config{Size: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Exchange(context.Background(), transport.Step{}); err != nil {
		t.Error(err)
	}
	e.Close()
}
