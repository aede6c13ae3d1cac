package chorale_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/chorale-go/chorale"
)

func TestMetricsAreTheSumsOfCalls(t *testing.T) {
	t.Setenv("CHORALE_METRICS", "1")
	const calls = 300
	const late = 30 * time.Millisecond
	over := []chan bool{make(chan bool), make(chan bool)} // the calls of each rank
	err := chorale.Run(t.Context(), 2, func(ctx context.Context, c *chorale.Comm) error {
		buf := []int{1, 2}
		for range calls {
			if err := chorale.Bcast(ctx, c, buf, 0); err != nil {
				return err
			}
		}
		if c.Rank() == 1 {
			if _, err := explained(ctx, c, `rank 0 waits in call 300 of communicator 0, "barrier `); err != nil {
				return err
			}
			time.Sleep(late)
		}
		if err := chorale.Barrier(ctx, c); err != nil {
			return err
		}
		if err := chorale.Send(ctx, c, buf, c.Rank(), 0); err != nil {
			return err
		}
		if _, err := chorale.Recv(ctx, c, make([]int, 8), c.Rank(), 0); err != nil {
			return err
		}
		if err := chorale.Bcast(ctx, c, buf, 2); err == nil {
			t.Error("a root that does not exist: want an error")
		}
		close(over[c.Rank()])
		select {
		case <-over[1-c.Rank()]:
		case <-ctx.Done():
			return ctx.Err()
		}
		m := c.Metrics()
		if m.Since.IsZero() || m.Held != c.Held() {
			t.Errorf("since %v, held %+v: want a time, and what Held returns", m.Since, m.Held)
		}
		if b := m.Collectives["bcast"]; b.Calls != calls || b.Time <= 0 || c.Rank() == 0 && b.Bytes != calls*16 {
			t.Errorf("bcast %+v: want %d calls of 16 bytes", b, calls)
		}
		if b := m.Collectives["barrier"]; c.Rank() == 0 && (b.Time < late/2 || b.Waiting < late/2 || b.Waiting > b.Time) {
			t.Errorf("barrier %+v: want most of %v, and that it was waiting", b, late)
		}
		for _, call := range []string{"send", "recv"} {
			if s := m.Messages[call]; s.Calls != 1 || s.Bytes != 16 || s.Waiting != -1 {
				t.Errorf("%s %+v: want one of 16 bytes, and that waiting is not known", call, s)
			}
		}
		if m.Failures["bcast"] != 1 {
			t.Errorf("failures %v: want one bcast", m.Failures)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestMetricsOnlyGrowWhileCallsGoOn(t *testing.T) {
	t.Setenv("CHORALE_METRICS", "1")
	err := chorale.Run(t.Context(), 2, func(ctx context.Context, c *chorale.Comm) error {
		var reader sync.WaitGroup
		over := make(chan struct{})
		reader.Go(func() {
			var last chorale.CallMetrics
			for {
				m := c.Metrics().Collectives["allreduce"]
				if m.Calls < last.Calls || m.Bytes < last.Bytes || m.Time < last.Time || m.Waiting < last.Waiting {
					t.Errorf("%+v after %+v: want more", m, last)
				}
				last = m
				select {
				case <-over:
					return
				case <-time.After(100 * time.Microsecond):
				}
			}
		})
		defer reader.Wait()
		defer close(over)
		src, dst := []int{1}, []int{0}
		for range 20000 {
			if err := chorale.AllReduce(ctx, c, dst, src, chorale.Sum); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestWithoutTheVariableThereAreNoMetrics(t *testing.T) {
	err := chorale.Run(t.Context(), 2, func(ctx context.Context, c *chorale.Comm) error {
		if err := chorale.Barrier(ctx, c); err != nil {
			return err
		}
		if m := c.Metrics(); !m.Since.IsZero() || len(m.Collectives) != 0 {
			t.Errorf("%+v: want nothing but what is held", m)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var none *chorale.Comm
	if m := none.Metrics(); len(m.Collectives) != 0 {
		t.Errorf("a nil Comm has %+v", m)
	}
}
