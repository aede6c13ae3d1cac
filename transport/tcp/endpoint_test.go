package tcp

import (
	"context"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/stage"
)

// job makes a job of n ranks in this process that ends with the test.
func job(t testing.TB, n int) []*Endpoint {
	t.Helper()
	ends, err := Loopback(n)
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

func TestTooLongACallIsAnError(t *testing.T) {
	ends := job(t, 2)
	long := stage.Sig
	long.Call = strings.Repeat("x", callMax)
	stage.Each(t, ends, func(e *Endpoint) error { return stage.Swap(context.Background(), e, long, 1-e.Rank()) })
	long.Call += "x"
	if err := stage.Swap(context.Background(), ends[0], long, 1); err == nil || !strings.Contains(err.Error(), "4097 bytes") {
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
