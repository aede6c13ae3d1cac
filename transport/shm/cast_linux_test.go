package shm

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
)

// multicast sends a short message.
func multicast(e *Endpoint, to []int, data string) error {
	return e.Exchange(context.Background(), transport.Step{Signature: sig, Sends: []transport.Send{{To: to, Data: []byte(data)}}})
}

// The slot at which rank 4 looks for its next cast held one for others, and its
// sender is about to write another there. The cast for rank 4 is in the next slot,
// and the message that was sent after it is in the lane.
func TestNoMessageOvertakesACastWhileAnotherIsWritten(t *testing.T) {
	ends := job(t, 5)
	for _, l := range ends[0].links[1:4] {
		l.out.heard.Store(math.MaxUint64) // they take what they get at once
	}
	casts := []string{"for others", "first"}
	for range castDepth - len(casts) {
		casts = append(casts, "for others")
	}
	for i, data := range casts {
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
	c := &ends[0].caster
	retract(&castSlot(c.slots, c.tail).turn)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	into := make([]byte, len("first"))
	for _, want := range []string{"first", "later"} {
		if err := receive(ctx, ends[4], sig, 0, into); err != nil || string(into) != want {
			t.Fatalf("got %q, %v, want %q", into, err, want)
		}
	}
}
