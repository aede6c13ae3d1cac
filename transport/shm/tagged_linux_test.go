package shm

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
)

// All staging buffers are in use by ranks that do not read: they may wait for the
// receiver of the message.
func TestAnEagerMessageDoesNotWaitForOtherRanksToRead(t *testing.T) {
	ends := job(t, 2)
	hold(ends[0])
	m := transport.Match{Context: 1}
	ctx, cancel := context.WithTimeout(context.Background(), hangs)
	defer cancel()
	const messages = 3
	sent := bytes.Repeat([]byte("eager."), 50)
	for i := range messages {
		sent[0] = byte(i)
		if err := ends[0].Send(ctx, 1, m, "bytes", sent); err != nil {
			t.Fatal(err)
		}
	}
	for i := range messages {
		into := make([]byte, len(sent))
		if _, err := ends[1].Recv(ctx, 0, m, "bytes", into); err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
		if sent[0] = byte(i); !bytes.Equal(into, sent) {
			t.Errorf("message %d: another one arrived", i)
		}
	}
	until(ends[0], func() bool { return !ends[0].polls.unflushed })
	if l := &ends[0].links[1].tagged; l.Waiters != 0 || len(l.copies) != 0 {
		t.Errorf("%d operations wait, %d copies are kept, after all messages were received", l.Waiters, len(l.copies))
	}
}

func TestNoOperationWaitsForTheReceiverOfACopyThatHasGone(t *testing.T) {
	ends := job(t, 2)
	hold(ends[0])
	for range 3 { // one finds a pair cell, and one a buffer
		if err := ends[0].Send(context.Background(), 1, transport.Match{Context: 1}, "bytes", make([]byte, 300)); err != nil {
			t.Fatal(err)
		}
	}
	until(ends[0], func() bool { return len(ends[0].links[1].tagged.copies) == 1 })
	ends[1].Close()
	until(ends[0], func() bool { return !ends[0].polls.unflushed && ends[0].links[1].tagged.Waiters == 0 })
}

// Rank 1 has sent all of a long message and left before rank 0, which waits for it, looks.
func TestTheContentsOfAMessageAreNotLostWithItsSender(t *testing.T) {
	ends := crew(t, 2, Config{NoCMA: true})
	message := bytes.Repeat([]byte("x"), match.EagerMax+1)
	m := transport.Match{Context: 1, Tag: 2}
	sent, received := make(chan error, 1), make(chan error, 1)
	go func() { sent <- ends[1].Send(t.Context(), 0, m, "", message) }()
	until(ends[1], func() bool { return ends[1].links[0].out.written == 1 })
	ends[1].engine.Lock()
	go func() {
		_, err := ends[0].Recv(t.Context(), 1, m, "", make([]byte, len(message)))
		received <- err
	}()
	until(ends[0], func() bool { return ends[0].engine.Tagged().Requested(1, 1) != nil })
	ends[0].engine.Lock()
	ends[1].unlock()
	if err := errors.Join(<-sent, ends[1].Close()); err != nil {
		t.Error(err)
	}
	ends[0].checkPeers()
	ends[0].unlock()
	if err := <-received; err != nil {
		t.Errorf("the message was sent, and its receive fails: %v", err)
	}
}
