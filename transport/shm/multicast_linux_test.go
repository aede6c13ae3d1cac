package shm

import (
	"context"
	"math"
	"testing"

	"github.com/chorale-go/chorale/transport"
)

// multicast sends a short message.
func multicast(e *Endpoint, to []int, data string) error {
	return e.Exchange(context.Background(), transport.Step{Signature: sig, Sends: []transport.Send{{To: to, Data: []byte(data)}}})
}

// The cell in which rank 4 looks for its next multicast frame held one for other ranks,
// and the sender is about to write another there. The frame for rank 4 is in the next
// cell, and the message that was sent after it is in the ring.
func TestNoMessageOvertakesAMulticastWhileAnotherIsWritten(t *testing.T) {
	ends := job(t, 5)
	for _, l := range ends[0].links[1:4] {
		l.out.ring.multicasts.Store(math.MaxUint64) // they take every frame at once
	}
	messages := []string{"for others", "first"}
	for range multicastDepth - len(messages) {
		messages = append(messages, "for others")
	}
	for i, data := range messages {
		to := []int{1, 2, 3}
		if data == "first" {
			to = []int{2, 3, 4}
		}
		if err := multicast(ends[0], to, data); err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			if err := multicast(ends[0], []int{4}, "later"); err != nil {
				t.Fatal(err)
			}
		}
	}
	w := &ends[0].out.multicast
	invalidate(&multicastCell(w.cells, w.written).sequence)
	ctx, cancel := context.WithTimeout(context.Background(), hangs)
	defer cancel()
	into := make([]byte, len("first"))
	for _, want := range []string{"first", "later"} {
		if err := receive(ctx, ends[4], sig, 0, into); err != nil || string(into) != want {
			t.Fatalf("got %q, %v, want %q", into, err, want)
		}
	}
}
