package shm

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
)

// Rank 0 waits for rank 1. Just before it sleeps, which its status says already, it
// gives way to a goroutine that waits for rank 2.
func TestARankSleepsForWhatHasBeenAskedForWhileItGaveWay(t *testing.T) {
	ends := job(t, 3)
	e := ends[0]
	e.patience = time.Hour // else it looks at everything again
	first := make(chan error, 1)
	go func() { first <- receive(context.Background(), e, sig, 1, nil) }()

	e.entering.Add(1) // so that it gives way whenever it may
	says := func() bool { return e.seat.status.Load()&asleep != 0 } // that it sleeps
	for woken := true; ; {
		e.mu.Lock()
		if e.asleep {
			e.nudge()
			woken = true
		} else if woken = woken && says(); says() && !woken {
			break
		}
		e.mu.Unlock()
		runtime.Gosched()
	}
	e.entering.Add(-1)
	second := make(chan error, 1)
	o := e.begin(context.Background())
	go func() {
		defer e.unlock()
		other := sig
		other.Context++
		defer e.leave(o)
		e.start(o, &transport.Step{Signature: other, Recvs: []transport.Recv{{From: 2}}})
		e.await(o)
		second <- o.err
	}()
	until(e, func() bool { return o.waits })

	other := sig
	other.Context++
	if err := send(ends[2], other, 0, nil); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-second:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Error("rank 0 sleeps, and does not know that rank 2 has sent what it waits for")
		e.Close()
		<-second
	}
	send(ends[1], sig, 0, nil)
	<-first
}
