package control

import (
	"testing"

	"github.com/chorale-go/chorale/internal/clock"
)

func TestClocksAreComparedOverTheConnection(t *testing.T) {
	server := newTestServer(t, 2)
	server.cfg.Host = "a"
	for rank := range 2 {
		cfg := configOf(server.Address(), 2)
		cfg.Rank = rank
		c, err := dialAs(t.Context(), cfg, JoinMessage{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		go c.Receive(func(int, string) {}, func(int, string) {})
		// Both processes are this one: the true offset is 0.
		for host, exact := range map[string]bool{"a": true, "b": false} {
			o, err := c.CompareClocks(host)
			if d := max(o.Value, -o.Value); err != nil || d > o.Bound || exact != (o.Bound == 0) || o.At > clock.Now() {
				t.Errorf("rank %d of host %s: %+v, error %v: want a bound, unless it is the launcher's host, and 0 within it", rank, host, o, err)
			}
		}
	}
}

func TestClocksAreNotComparedWithoutAConnection(t *testing.T) {
	server := newTestServer(t, 1)
	c, err := dialAs(t.Context(), configOf(server.Address(), 1), JoinMessage{})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if o, err := c.CompareClocks("b"); err == nil {
		t.Errorf("%+v, want an error", o)
	}
}
