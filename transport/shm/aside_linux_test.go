package shm

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
)

// partlyAside has rank 0 put aside the beginning of a message of rank 1, the rest
// of which comes afterwards, and is here.
func partlyAside(t *testing.T) (ends []*Endpoint, message []byte) {
	t.Helper()
	ends = crew(t, 2, Config{Apart: true})
	ends[0].crowded, ends[1].crowded = true, true // so that boxes are full
	message = bytes.Repeat([]byte("partly"), 12*ends[1].seg.boxLen/6)
	other := sig
	other.Context++
	sent := make(chan error)
	go func() { sent <- send(ends[1], sig, 0, message) }()
	until(ends[1], func() bool { return ends[1].links[0].tail == window })
	if err := send(ends[1], other, 0, nil); err != nil {
		t.Fatal(err)
	}
	ends[1].lock() // the rest is to come later
	err := receive(context.Background(), ends[0], other, 1, nil)
	ends[1].unlock()
	if err != nil {
		t.Fatal(err)
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	if l := &ends[0].links[1]; len(l.aside) != 1 || l.aside[0].whole {
		t.Fatal("no message is aside in part")
	}
	return ends, message
}

func TestAMessageThatIsHereIsNotLostWithItsSender(t *testing.T) {
	ends, message := partlyAside(t)
	ends[1].Close()
	ends[0].lock()
	ends[0].partings = true // as after a frame to some rank that has gone
	ends[0].unlock()
	into := make([]byte, len(message))
	if err := receive(context.Background(), ends[0], sig, 1, into); err != nil || !bytes.Equal(into, message) {
		t.Errorf("another message arrived, or %v", err)
	}
}

func TestAMessageBehindOneThatIsHandedOverIsNotForgotten(t *testing.T) {
	ends, message := partlyAside(t)
	if err := send(ends[1], sig, 0, []byte("second")); err != nil {
		t.Fatal(err)
	}
	ends[0].patience = time.Hour // else it looks at all frames again
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	first, second := make([]byte, len(message)), make([]byte, 6)
	err := ends[0].Exchange(ctx, transport.Step{Signature: sig, Recvs: []transport.Recv{{From: 1, Into: first}, {From: 1, Into: second}}})
	if err != nil || !bytes.Equal(first, message) || string(second) != "second" {
		t.Errorf("other messages arrived, the second as %q, or %v", second, err)
	}
}
