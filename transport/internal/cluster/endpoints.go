package cluster

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
)

// Sig is the signature of most tests.
var Sig = transport.Signature{Context: 1, Sequence: 1, Call: "test"}

// Job returns the endpoints of a job and closes them when the test ends. If err
// is not nil, it fails the test.
func Job[E transport.Endpoint](t testing.TB, ends []E, err error) []E {
	t.Helper()
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

// All converts the endpoints of one transport to the interface.
func All[E transport.Endpoint](ends []E) []transport.Endpoint {
	all := make([]transport.Endpoint, len(ends))
	for rank, e := range ends {
		all[rank] = e
	}
	return all
}

// Each runs f on every rank at once and fails the test at the first error.
func Each[E transport.Endpoint](t testing.TB, ends []E, f func(e E) error) {
	t.Helper()
	errs := make([]error, len(ends))
	var ranks sync.WaitGroup
	for i, e := range ends {
		ranks.Go(func() { errs[i] = f(e) })
	}
	ranks.Wait()
	for rank, err := range errs {
		if err != nil {
			t.Fatalf("rank %d: %v", rank, err)
		}
	}
}

// Until returns when cond holds. It polls cond every 100 µs.
func Until(cond func() bool) {
	for !cond() {
		time.Sleep(100 * time.Microsecond)
	}
}

// Send is an Exchange that sends data to one rank.
func Send(e transport.Endpoint, s transport.Signature, to int, data []byte) error {
	return e.Exchange(context.Background(), transport.Step{Signature: s, Sends: []transport.Send{{To: []int{to}, Data: data}}})
}

// Receive is an Exchange that fills into from one rank.
func Receive(ctx context.Context, e transport.Endpoint, s transport.Signature, from int, into []byte) error {
	return e.Exchange(ctx, transport.Step{Signature: s, Recvs: []transport.Recv{{From: from, Into: into}}})
}

// Swap is an Exchange that sends 8 bytes to a peer and receives 8 from it. It
// cannot complete before the peer has called the same, on any transport.
func Swap(ctx context.Context, e transport.Endpoint, s transport.Signature, peer int) error {
	return e.Exchange(ctx, transport.Step{
		Signature: s,
		Sends:     []transport.Send{{To: []int{peer}, Data: make([]byte, 8)}},
		Recvs:     []transport.Recv{{From: peer, Into: make([]byte, 8)}},
	})
}

// CheckPeer tests that err is a [transport.PeerError] that names the peer, wraps
// want, and contains text.
func CheckPeer(t *testing.T, err error, peer int, want error, text string) {
	t.Helper()
	var e *transport.PeerError
	if !errors.As(err, &e) || e.Peer != peer || !errors.Is(err, want) || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v, want %v", err, &transport.PeerError{Peer: peer, Err: want, Reason: text})
	}
}
