package shm

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
)

// All boxes are held by ranks that do not read: they may wait for who takes the
// letter.
func TestAShortLetterDoesNotWaitForOthersToRead(t *testing.T) {
	ends := job(t, 2)
	hold(ends[0])
	stamp := transport.Match{Context: 1}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	const letters = 3
	sent := bytes.Repeat([]byte("letter"), 50)
	for i := range letters {
		sent[0] = byte(i)
		if err := ends[0].Send(ctx, 1, stamp, "bytes", sent); err != nil {
			t.Fatal(err)
		}
	}
	for i := range letters {
		into := make([]byte, len(sent))
		if _, err := ends[1].Recv(ctx, 0, stamp, "bytes", into); err != nil {
			t.Fatalf("letter %d: %v", i, err)
		}
		if sent[0] = byte(i); !bytes.Equal(into, sent) {
			t.Errorf("letter %d: another one came", i)
		}
	}
	until(ends[0], func() bool { return !ends[0].unposted })
	if l := &ends[0].links[1]; l.waits != 0 || l.copies != 0 {
		t.Errorf("%d letters are awaited, %d copies kept, after all were taken", l.waits, l.copies)
	}
}

func TestNobodyWaitsForTheTakerOfACopyThatIsGone(t *testing.T) {
	ends := job(t, 2)
	hold(ends[0])
	if err := ends[0].Send(context.Background(), 1, transport.Match{Context: 1}, "bytes", make([]byte, 300)); err != nil {
		t.Fatal(err)
	}
	until(ends[0], func() bool { return ends[0].links[1].copies == 1 })
	ends[1].Close()
	until(ends[0], func() bool { return !ends[0].unposted && ends[0].links[1].waits == 0 })
}
