package shm

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
)

// partlyUnexpected has rank 0 move the beginning of a message of rank 1 to the
// unexpected queue. The rest has arrived afterwards.
func partlyUnexpected(t *testing.T) (ends []*Endpoint, message []byte) {
	t.Helper()
	ends = crew(t, 2, Config{NoCMA: true})
	ends[0].wait.Oversubscribed, ends[1].wait.Oversubscribed = true, true // so that staging buffers are full
	message = bytes.Repeat([]byte("partly"), 12*ends[1].seg.stagingLen/6)
	other := sig
	other.Context++
	sent := make(chan error)
	go func() { sent <- send(ends[1], sig, 0, message) }()
	until(ends[1], func() bool { return ends[1].links[0].out.written == pipelineDepth })
	if err := send(ends[1], other, 0, nil); err != nil {
		t.Fatal(err)
	}
	ends[1].engine.Lock() // the rest is to come later
	err := receive(context.Background(), ends[0], other, 1, nil)
	ends[1].unlock()
	if err != nil {
		t.Fatal(err)
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	if m := ends[0].links[1].in.queue.First(); m == nil || m.Complete() {
		t.Fatal("no message is in the unexpected queue in part")
	}
	return ends, message
}

func TestAMessageThatHasArrivedIsNotLostWithItsSender(t *testing.T) {
	ends, message := partlyUnexpected(t)
	ends[1].Close()
	ends[0].engine.Lock()
	ends[0].polls.terminated = true // as after a frame to some rank that has gone
	ends[0].unlock()
	into := make([]byte, len(message))
	if err := receive(context.Background(), ends[0], sig, 1, into); err != nil || !bytes.Equal(into, message) {
		t.Errorf("another message arrived, or %v", err)
	}
}

func TestAMessageBehindAnUnexpectedOneIsReceived(t *testing.T) {
	ends, message := partlyUnexpected(t)
	if err := send(ends[1], sig, 0, []byte("second")); err != nil {
		t.Fatal(err)
	}
	ends[0].wait.stallTimeout = time.Hour // else it polls all links again
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	first, second := make([]byte, len(message)), make([]byte, 6)
	err := ends[0].Exchange(ctx, transport.Step{Signature: sig, Recvs: []transport.Recv{{From: 1, Into: first}, {From: 1, Into: second}}})
	if err != nil || !bytes.Equal(first, message) || string(second) != "second" {
		t.Errorf("other messages arrived, the second as %q, or %v", second, err)
	}
}
