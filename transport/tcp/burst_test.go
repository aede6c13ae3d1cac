package tcp

import (
	"cmp"
	"context"
	"encoding/binary"
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
)

// startBurst starts n messages of 8 bytes to a rank, numbered from first.
func startBurst(t *testing.T, e *Endpoint, to, n, first int) {
	t.Helper()
	requests := make([]transport.Request, n)
	for i := range requests {
		b := binary.LittleEndian.AppendUint64(nil, uint64(first+i))
		e.StartSend(context.Background(), &requests[i], to, tag, "bytes", b)
		clear(b) // it is the caller's again
		if !requests[i].Done() || requests[i].Err != nil {
			t.Fatalf("message %d is done: %t, with error %v", i, requests[i].Done(), requests[i].Err)
		}
	}
}

// receiveBurst receives n messages that startBurst has started.
func receiveBurst(t *testing.T, e *Endpoint, from, n, first int) {
	t.Helper()
	for i := range n {
		if err := receiveTagged(e, from, binary.LittleEndian.AppendUint64(nil, uint64(first+i))); err != nil {
			t.Fatalf("message %d of %d: %v", i, n, err)
		}
	}
}

// expectBurst has rank 0 expect bursts of n messages, however long these take. They are not
// ended before they are complete, unless delay is set.
func expectBurst(ends []*Endpoint, n int, delay time.Duration) {
	e := ends[0]
	e.engine.Lock()
	defer e.engine.Unlock()
	e.bursts.time, e.bursts.delay = time.Hour, cmp.Or(delay, time.Hour)
	e.links[1].burst = burst{last: n, expected: n}
}

// linked has ranks 0 and 1 connected.
func linked(t *testing.T) []*Endpoint {
	ends := job(t, 2)
	each(t, ends, func(e *Endpoint) error { return swap(context.Background(), e, sig, 1-e.Rank()) })
	return ends
}

func TestMessagesOfABurstArriveInTheOrderInWhichTheyWereStarted(t *testing.T) {
	ends := linked(t)
	total := 0
	for _, n := range []int{1, 2, 2, 5, 5, 5, 3, 1, 7, 16, 16, 16, 2} {
		startBurst(t, ends[0], 1, n, total)
		if err := ends[0].Send(context.Background(), 1, tag, "bytes", binary.LittleEndian.AppendUint64(nil, uint64(total+n))); err != nil {
			t.Fatal(err)
		}
		receiveBurst(t, ends[1], 0, n+1, total)
		total += n + 1
	}
}

func TestTheLastMessageThatABurstIsExpectedToHaveIsNotHeldBack(t *testing.T) {
	ends := linked(t)
	expectBurst(ends, 4, 0)
	startBurst(t, ends[0], 1, 4, 0)
	ends[0].engine.Lock()
	if l := ends[0].links[1]; l.burst.deferred || l.out.pending() {
		t.Errorf("of as many messages as are expected, some are deferred: %t, %t", l.burst.deferred, l.out.pending())
	}
	ends[0].engine.Unlock()
	receiveBurst(t, ends[1], 0, 4, 0)
}

// The sender calls nothing any more.
func TestMessagesOfABurstThatIsShorterThanExpectedArrive(t *testing.T) {
	ends := linked(t)
	expectBurst(ends, 8, burstDelay)
	startBurst(t, ends[0], 1, 3, 0)
	receiveBurst(t, ends[1], 0, 3, 0)
}

func TestMessagesOfABurstAreReceivedAfterTheirSenderHasLeft(t *testing.T) {
	ends := linked(t)
	expectBurst(ends, 8, 0)
	startBurst(t, ends[0], 1, 3, 0)
	if err := ends[0].Close(); err != nil {
		t.Fatal(err)
	}
	receiveBurst(t, ends[1], 0, 3, 0)
}

// A burst that nobody ends is written as soon as this rank waits for anything.
func TestABurstEndsWhereItsRankWaits(t *testing.T) {
	ends := linked(t)
	expectBurst(ends, 8, 0)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	go func() {
		into := make([]byte, 8)
		for range 3 {
			if _, err := ends[1].Recv(ctx, 0, tag, "bytes", into); err != nil {
				return
			}
		}
		_ = ends[1].Send(ctx, 0, transport.Match{Context: 1, Tag: 8}, "bytes", nil)
	}()
	startBurst(t, ends[0], 1, 3, 0)
	if _, err := ends[0].Recv(ctx, 1, transport.Match{Context: 1, Tag: 8}, "bytes", nil); err != nil {
		t.Fatal(err)
	}
}
