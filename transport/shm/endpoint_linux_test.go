package shm

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/cluster"
)

// What most tests say.
var (
	sig     = cluster.Sig
	each    = cluster.Each[*Endpoint]
	send    = cluster.Send
	receive = cluster.Receive
)

// hangs is after which time a call hangs that is to return at once, or soon. It is so long
// because a thread may get no processor for seconds, on a machine that runs other tests.
const hangs = 30 * time.Second

// job makes a job of n ranks in this process that ends with the test.
func job(t testing.TB, n int) []*Endpoint {
	t.Helper()
	return crew(t, n, Config{})
}

// crew makes one whose endpoints are like cfg.
func crew(t testing.TB, n int, cfg Config) []*Endpoint {
	t.Helper()
	ends, err := loopback(n, cfg)
	return cluster.Job(t, ends, err)
}

// until returns when cond holds for the endpoint.
func until(e *Endpoint, cond func() bool) {
	cluster.Until(func() bool {
		e.engine.Lock()
		defer e.unlock()
		return cond()
	})
}

// checkLost tests that err says which peer is lost, and why.
func checkLost(t *testing.T, err error, peer int, why string) {
	t.Helper()
	var e *transport.PeerError
	if !errors.As(err, &e) || e.Peer != peer || !errors.Is(err, transport.ErrLost) || !strings.Contains(err.Error(), why) {
		t.Errorf("got %v, want %v", err, &transport.PeerError{Peer: peer, Err: transport.ErrLost, Reason: why})
	}
}
