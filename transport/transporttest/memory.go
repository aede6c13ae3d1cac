package transporttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/cluster"
)

// memoryClaims: what an endpoint holds for its peers is bounded, and the bound keeps no
// program waiting whose messages are all received at some time.
var memoryClaims = []claim{
	{"UnexpectedMessagesAreBounded", testUnexpectedBound},
	{"TwoCallsAtATimeMayBeReceivedInAnyOrder", testCallsInAnyOrder},
	{"ManyCallsAtATimeMayBeReceivedInAnyOrder", testManyCallsInAnyOrder},
	{"AContextThatIsHeldHoldsUpNoTaggedMessage", testHeldTagged},
	{"AnExchangeThatIsHeldEndsWithItsReceiver", testHeldReceiverLeaves},
}

// underWay is what may be on its way when a bound is reached, beside the message that
// is being sent, in bytes.
const underWay = 64 << 20

// inContext returns the signature of a context.
func inContext(context uint32) transport.Signature {
	s := sig
	s.Context = context
	return s
}

// testUnexpectedBound has rank 0 send in a context in which rank 1 receives only after a
// message of another context, which comes last. The tagged messages, which rank 0 sends
// meanwhile, make rank 1 take what has come.
func testUnexpectedBound(t *testing.T, start Start) {
	const size = 1 << 20
	messages := 200
	if testing.Short() || UnderRace {
		messages = 80
	}
	j := open(t, start, 2)
	sent := cluster.Begin(j.ctx, func(ctx context.Context) error {
		for i := range messages {
			if err := send(ctx, j.ends[0], inContext(1), 1, pattern(make([]byte, size), i)); err != nil {
				return fmt.Errorf("message %d: %w", i, err)
			}
		}
		return nil
	})
	most := 0
	for since := time.Now(); time.Since(since) < 300*time.Millisecond; {
		if _, _, err := j.ends[1].Probe(j.ctx, 0, match, false); err != nil {
			t.Fatal(err)
		}
		if held := j.ends[1].Held().Unexpected; held > most {
			most, since = held, time.Now() // more arrives
		}
	}
	if bound := transport.UnexpectedMax + underWay; most > bound {
		t.Errorf("%d bytes of unexpected messages are held, want at most %d", most, bound)
	}
	into, want := make([]byte, size), make([]byte, size)
	for i := range messages {
		if err := recv(j.ctx, j.ends[1], inContext(1), 0, into); err != nil || !bytes.Equal(into, pattern(want, i)) {
			t.Fatalf("message %d arrived changed, or %v", i, err)
		}
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	if held := j.ends[1].Held().Unexpected; held != 0 {
		t.Errorf("all messages are received, and %d bytes are held", held)
	}
}

// testCallsInAnyOrder has rank 0 send two long messages in two contexts at a time, of
// which rank 1 receives the second one first.
func testCallsInAnyOrder(t *testing.T, start Start) { callsInAnyOrder(t, start, 2, 64<<20) }

// testManyCallsInAnyOrder does the same with more messages than are held.
func testManyCallsInAnyOrder(t *testing.T, start Start) { callsInAnyOrder(t, start, 12, 3<<20) }

func callsInAnyOrder(t *testing.T, start Start, calls, size int) {
	if testing.Short() || UnderRace {
		size /= 4
	}
	j := open(t, start, 2)
	var sent []<-chan error
	for i := range calls {
		data := pattern(make([]byte, size), i)
		begun := cluster.Begin(j.ctx, func(ctx context.Context) error {
			return send(ctx, j.ends[0], inContext(uint32(i)), 1, data)
		})
		sent = append(sent, begun)
	}
	into, want := make([]byte, size), make([]byte, size)
	for i := calls - 1; i >= 0; i-- {
		if err := recv(j.ctx, j.ends[1], inContext(uint32(i)), 0, into); err != nil || !bytes.Equal(into, pattern(want, i)) {
			t.Fatalf("context %d: the message arrived changed, or %v", i, err)
		}
	}
	for i, sent := range sent {
		if err := <-sent; err != nil {
			t.Errorf("context %d: %v", i, err)
		}
	}
}

// begin64MiB has rank 0 send more than rank 1 holds, in a context in which rank 1 does
// not receive, and returns when something of that has arrived.
func begin64MiB(j *job) (sent <-chan error) {
	sent = cluster.Begin(j.ctx, func(ctx context.Context) error {
		return send(ctx, j.ends[0], inContext(1), 1, make([]byte, 64<<20))
	})
	j.untilArrived(j.ends[1])
	return sent
}

func testHeldTagged(t *testing.T, start Start) {
	j := open(t, start, 2)
	sent := begin64MiB(j)
	j.mustAll(func(ctx context.Context, e transport.Endpoint) error {
		for i := range 100 {
			err := errors.Join(
				sendTagged(ctx, e, 1, match, tagged(i, 100<<10)),
				recvTagged(ctx, e, 1, match, tagged(i, 1000)))
			if err != nil {
				return err
			}
		}
		return nil
	}, func(ctx context.Context, e transport.Endpoint) error {
		for i := range 100 {
			err := errors.Join(
				sendTagged(ctx, e, 0, match, tagged(i, 1000)),
				recvTagged(ctx, e, 0, match, tagged(i, 100<<10)))
			if err != nil {
				return err
			}
		}
		return recv(ctx, e, inContext(1), 0, make([]byte, 64<<20))
	})
	if err := <-sent; err != nil {
		t.Error(err)
	}
}

func testHeldReceiverLeaves(t *testing.T, start Start) {
	j := open(t, start, 2)
	sent := begin64MiB(j)
	if _, _, err := j.ends[1].Probe(j.ctx, 0, match, false); err != nil {
		t.Fatal(err)
	}
	if err := j.ends[1].Close(); err != nil {
		t.Errorf("rank 1: Close: %v", err)
	}
	checkPeer(t, <-sent, 1, transport.ErrLeft)
}
