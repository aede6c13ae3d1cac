package transporttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/cluster"
)

// queueClaims: tagged messages that no receive has matched yet, and receives that
// no message has matched.
var queueClaims = []claim{
	{"AllRanksMaySendTaggedMessagesFirst", testTaggedSendFirst},
	{"UnreceivedTaggedMessagesAreBounded", testTaggedBound},
	{"TaggedMessagesArriveWithoutHelpOfTheirSender", testTaggedUnaided},
	{"ATaggedMessageIsReceivedAfterItsSenderHasLeft", testTaggedAfterClose},
	{"QueuedTaggedMessagesArriveAfterTheirSenderHasLeft", testTaggedDuringClose},
	{"WaitingForATaggedMessageOfARankThatLeftFails", testTaggedLeft},
	{"ATaggedMessageWhoseSendIsCanceledIsWithdrawn", testCanceledSend},
	{"ACanceledRecvEndsNoExchange", testCanceledWait},
	{"ManyGoroutinesSendAndReceiveAtOnce", testManyAtOnce},
}

// testTaggedSendFirst has every rank send before any receives: a short message
// needs no receiver.
func testTaggedSendFirst(t *testing.T, start Start) {
	open(t, start, 4).each(func(ctx context.Context, e transport.Endpoint) error {
		for to := range e.Size() {
			if to != e.Rank() {
				if err := sendTagged(ctx, e, to, match, tagged(e.Rank(), 4000)); err != nil {
					return err
				}
			}
		}
		for from := range e.Size() {
			if from != e.Rank() {
				if err := recvTagged(ctx, e, from, match, tagged(from, 4000)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// testTaggedBound sends short messages until one waits for its receiver, and
// receives those that did not; three times. A Send that takes longer than 5 ms
// waits.
func testTaggedBound(t *testing.T, start Start) {
	const size, least, most = 60 << 10, 8, 18 // about 0.5 MiB and 1 MiB
	j := open(t, start, 2)
	n := 0
	for range 3 {
		first := n
		for waits := false; !waits || n < first+least; {
			ctx, cancel := context.WithTimeout(j.ctx, 5*time.Millisecond)
			err := sendTagged(ctx, j.ends[0], 1, match, tagged(n, size))
			cancel()
			if waits = errors.Is(err, context.DeadlineExceeded); !waits {
				n++
			}
			switch {
			case err != nil && (!waits || j.ctx.Err() != nil):
				t.Fatalf("with %d unreceived messages of %d bytes: %v", n-first, size, err)
			case n > first+most:
				t.Fatalf("with %d unreceived messages of %d bytes, another is copied", n-first, size)
			}
		}
		for i := first; i < n; i++ {
			if err := recvTagged(j.ctx, j.ends[1], 0, match, tagged(i, size)); err != nil {
				t.Fatalf("message %d: %v", i, err)
			}
		}
	}
}

// manyTagged are short messages that need more room than a transport has on the
// way, and less than the bound of unreceived ones.
var manyTagged = map[string][][]byte{"few": taggedList(16, 60<<10, 0), "small": taggedList(400, 500, 1)}

func taggedList(n, size, more int) (all [][]byte) {
	for i := range n {
		all = append(all, tagged(i, size+i*more))
	}
	return all
}

func sendList(ctx context.Context, e transport.Endpoint, to int, all [][]byte) error {
	for _, data := range all {
		if err := sendTagged(ctx, e, to, match, data); err != nil {
			return err
		}
	}
	return nil
}

func recvList(ctx context.Context, e transport.Endpoint, from int, all [][]byte) error {
	for i, want := range all {
		if err := recvTagged(ctx, e, from, match, want); err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
	}
	return nil
}

// testTaggedUnaided has the sender call nothing after its sends.
func testTaggedUnaided(t *testing.T, start Start) {
	for name, all := range manyTagged {
		t.Run(name, func(t *testing.T) {
			j := open(t, start, 2)
			if err := errors.Join(sendList(j.ctx, j.ends[0], 1, all), recvList(j.ctx, j.ends[1], 0, all)); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func testTaggedAfterClose(t *testing.T, start Start) {
	left := make(chan struct{})
	open(t, start, 2).mustAll(func(ctx context.Context, e transport.Endpoint) error {
		defer close(left)
		return errors.Join(sendTagged(ctx, e, 1, match, tagged(1, 1000)), e.Close())
	}, func(ctx context.Context, e transport.Endpoint) error {
		<-left
		return recvTagged(ctx, e, 0, match, tagged(1, 1000))
	})
}

// testTaggedDuringClose has the receiver receive while the sender closes.
func testTaggedDuringClose(t *testing.T, start Start) {
	for name, all := range manyTagged {
		t.Run(name, func(t *testing.T) {
			j := open(t, start, 2)
			if err := sendList(j.ctx, j.ends[0], 1, all); err != nil {
				t.Fatal(err)
			}
			j.mustAll(func(ctx context.Context, e transport.Endpoint) error {
				return e.Close()
			}, func(ctx context.Context, e transport.Endpoint) error {
				return recvList(ctx, e, 0, all)
			})
			checkPeer(t, recvTagged(j.ctx, j.ends[1], 0, match, nil), 0, transport.ErrLeft)
		})
	}
}

func testTaggedLeft(t *testing.T, start Start) {
	errs := open(t, start, 3).all(func(ctx context.Context, e transport.Endpoint) error {
		return e.Close()
	}, func(ctx context.Context, e transport.Endpoint) error {
		return recvTagged(ctx, e, 0, match, nil)
	}, func(ctx context.Context, e transport.Endpoint) error {
		return sendTagged(ctx, e, 0, match, tagged(1, 1<<20))
	})
	checkPeer(t, errs[1], 0, transport.ErrLeft, transport.ErrLost)
	checkPeer(t, errs[2], 0, transport.ErrLeft, transport.ErrLost)
}

func testCanceledSend(t *testing.T, start Start) {
	j := open(t, start, 2)
	ctx, cancel := context.WithCancel(j.ctx)
	sent := make(chan error, 1)
	go func() { sent <- sendTagged(ctx, j.ends[0], 1, match, tagged(1, 1<<20)) }()
	probe := func(wait bool) (size int) {
		info, _, err := j.ends[1].Probe(j.ctx, 0, match, wait)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size
	}
	if size := probe(true); size != 1<<20 {
		t.Fatalf("a message of %d bytes arrived, want 1 MiB", size)
	}
	cancel()
	if err := <-sent; !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want %v", err, context.Canceled)
	}
	if err := sendTagged(j.ctx, j.ends[0], 1, match, tagged(2, 100)); err != nil {
		t.Fatal(err)
	}
	j.until(func() bool {
		j.ends[1].CheckUnreceived() // polls
		return probe(false) == 100
	})
	if err := recvTagged(j.ctx, j.ends[1], 0, match, tagged(2, 100)); err != nil {
		t.Fatal(err)
	}
}

// testCanceledWait cancels receives of tagged messages while the endpoint is in an
// Exchange under another context.
func testCanceledWait(t *testing.T, start Start) {
	j := open(t, start, 2)
	ctx, cancel := context.WithCancel(j.ctx)
	defer cancel()
	received := map[int]<-chan error{}
	for _, from := range []int{0, 1, transport.Any} {
		received[from] = cluster.Begin(ctx, func(ctx context.Context) error {
			return recvTagged(ctx, j.ends[0], from, match, nil)
		})
	}
	j.mustAll(func(ctx context.Context, e transport.Endpoint) error {
		return swap(ctx, e, sig, 1)
	}, func(ctx context.Context, e transport.Endpoint) error {
		j.untilArrived(e) // so rank 0 is in its Exchange
		cancel()
		for from, err := range received {
			if err := <-err; !errors.Is(err, context.Canceled) {
				t.Errorf("from %d: got %v, want %v", from, err, context.Canceled)
			}
		}
		return swap(ctx, e, sig, 0)
	})
}

// testManyAtOnce has several goroutines of each rank send and receive. Every
// message arrives once, whole.
func testManyAtOnce(t *testing.T, start Start) {
	const n, each, receivers, largest = 3, 40, 4, 100 << 10
	data := func(i int) []byte {
		return bytes.Repeat([]byte{byte(i)}, []int{2, 8 << 10, largest}[i%3])
	}
	var received sync.Map
	receive := func(ctx context.Context, e transport.Endpoint) (errs error) {
		into := make([]byte, largest)
		for range n * each / receivers {
			info, err := e.Recv(ctx, transport.Any, match, "bytes", into)
			if err != nil {
				return errors.Join(errs, err)
			}
			i := int(into[0])
			if !bytes.Equal(into[:info.Size], data(i)) {
				errs = errors.Join(errs, fmt.Errorf("message %d of rank %d arrived changed", i, info.From))
			}
			if _, twice := received.LoadOrStore([3]int{info.From, e.Rank(), i}, true); twice {
				errs = errors.Join(errs, fmt.Errorf("message %d of rank %d arrived twice", i, info.From))
			}
		}
		return errs
	}
	j := open(t, start, n)
	j.each(func(ctx context.Context, e transport.Endpoint) error {
		done := make(chan error, n+receivers)
		for peer := range n {
			go func() {
				var errs error
				for i := range each {
					errs = errors.Join(errs, sendTagged(ctx, e, peer, match, data(i)))
				}
				done <- errs
			}()
		}
		for range receivers {
			go func() { done <- receive(ctx, e) }()
		}
		var errs error
		for range cap(done) {
			errs = errors.Join(errs, <-done)
		}
		return errs
	})
	for rank, e := range j.ends {
		if info, found, err := e.Probe(j.ctx, transport.Any, match, false); found || err != nil {
			t.Errorf("rank %d has a message more than was sent, %+v, %v", rank, info, err)
		}
	}
}
