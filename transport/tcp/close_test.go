package tcp

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/cluster"
)

// Close waits for the end of a peer that does not read; where the end of a context ends
// that wait, nobody knows whether the message has arrived.
func TestCloseThatIsToldNotToWaitSaysWhatItCouldNotDeliver(t *testing.T) {
	for name, k := range map[string]kind{"goroutines": byGoroutines, "TLS": byTLS} {
		t.Run(name, func(t *testing.T) {
			ends, err := k(2)
			ends = cluster.Job(t, ends, err)
			each(t, ends, func(e *Endpoint) error { return swap(context.Background(), e, sig, 1-e.Rank()) })
			from, reads := ends[0], &ends[1].links[0].stream.(*goroutineStream).mu
			reads.Lock()
			defer reads.Unlock()
			if err := from.Send(context.Background(), 1, tag, "bytes", []byte("a message")); err != nil {
				t.Fatal(err)
			}
			closed := make(chan error, 1)
			go func() { closed <- from.Close() }()
			cluster.Until(from.hasClosed)
			impatient := errors.New("no patience")
			from.Abort(impatient)
			var u *transport.UndeliveredError
			if err := <-closed; !errors.As(err, &u) || u.Peer != 1 || u.Bytes < len("a message") || !errors.Is(err, impatient) {
				t.Errorf("Close: %v, want %v", err, &transport.UndeliveredError{Peer: 1, Bytes: len("a message"), Err: impatient})
			}
		})
	}
}

// A failure ends the wait for messages to leave. They may leave by themselves then, in front of
// the notice of the failure, and the peer need not receive them any more.
func TestCloseThatFailsWhileMessagesLeaveSaysSo(t *testing.T) {
	ends := job(t, 2)
	each(t, ends, func(e *Endpoint) error { return swap(context.Background(), e, sig, 1-e.Rank()) })
	from := ends[0]
	s := &slowStream{stream: from.links[1].stream}
	s.left.Store(8)
	from.links[1].stream = s
	if err := from.Send(context.Background(), 1, tag, "bytes", []byte("a message")); err != nil {
		t.Fatal(err)
	}
	closed := make(chan error, 1)
	go func() { closed <- from.Close() }()
	cluster.Until(func() bool { return s.looks.Load() > 0 })
	impatient := errors.New("no patience")
	from.engine.Lock()
	s.left.Store(0)
	from.engine.Fail(impatient)
	from.engine.Unlock()
	var u *transport.UndeliveredError
	if err := <-closed; !errors.As(err, &u) || u.Peer != 1 || u.Bytes != 8 || !errors.Is(err, impatient) {
		t.Errorf("Close: %v, want %v", err, &transport.UndeliveredError{Peer: 1, Bytes: 8, Err: impatient})
	}
}

// A slowStream says how many bytes have not left this machine.
type slowStream struct {
	stream
	left, looks atomic.Int64
}

func (s *slowStream) unsent() int {
	s.looks.Add(1)
	return int(s.left.Load())
}
