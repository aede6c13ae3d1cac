package shm

import (
	"testing"
	"time"
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
