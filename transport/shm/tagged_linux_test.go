package shm

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
)

// All staging buffers are in use by ranks that do not read: they may wait for the
// receiver of the message.
func TestAnEagerMessageDoesNotWaitForOtherRanksToRead(t *testing.T) {
	ends := job(t, 2)
	hold(ends[0])
	m := transport.Match{Context: 1}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
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
	if l := &ends[0].links[1].tagged; l.Waiters != 0 || l.copies != 0 {
		t.Errorf("%d operations wait, %d copies are kept, after all messages were received", l.Waiters, l.copies)
	}
}

func TestNoOperationWaitsForTheReceiverOfACopyThatHasGone(t *testing.T) {
	ends := job(t, 2)
	hold(ends[0])
	for range 2 { // one of them finds a buffer
		if err := ends[0].Send(context.Background(), 1, transport.Match{Context: 1}, "bytes", make([]byte, 300)); err != nil {
			t.Fatal(err)
		}
	}
	until(ends[0], func() bool { return ends[0].links[1].tagged.copies == 1 })
	ends[1].Close()
	until(ends[0], func() bool { return !ends[0].polls.unflushed && ends[0].links[1].tagged.Waiters == 0 })
}
