package shm

import (
	"testing"

	"github.com/chorale-go/chorale/transport/internal/stage"
)

// What most tests say.
var (
	sig     = stage.Sig
	each    = stage.Each[*Endpoint]
	send    = stage.Send
	receive = stage.Receive
)

// job makes a job of n ranks in this process that ends with the test.
func job(t testing.TB, n int) []*Endpoint {
	t.Helper()
	return crew(t, n, Config{})
}

// crew makes one whose endpoints are like cfg.
func crew(t testing.TB, n int, cfg Config) []*Endpoint {
	t.Helper()
	ends, err := loopback(n, cfg)
	return stage.Job(t, ends, err)
}

// until returns when cond holds for the endpoint.
func until(e *Endpoint, cond func() bool) {
	stage.Until(func() bool {
		e.lock()
		defer e.mu.Unlock()
		return cond()
	})
}
