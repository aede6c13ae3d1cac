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
	{"UnreceivedTaggedMessagesAreCounted", testTaggedCounted},
	{"ReleaseDropsTheTaggedMessagesOfItsContext", testReleaseTagged},
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
// receives those that did not; three times.
func testTaggedBound(t *testing.T, start Start) {
	const size, least = 60 << 10, 8 // about half of the bound
	j := open(t, start, 2)
	for range 3 {
		for i := range j.sendTaggedUntilFull(size, least) {
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

// sendTaggedUntilFull sends messages of a size to rank 1 until one waits for its
// receiver, and returns how many did not, which are the least at the least. A Send that
// takes longer than 5 ms waits, or 50 ms under the race detector.
func (j *job) sendTaggedUntilFull(size, least int) (n int) {
	j.Helper()
	limit := 5 * time.Millisecond
	if UnderRace {
		limit *= 10
	}
	for {
		ctx, cancel := context.WithTimeout(j.ctx, limit)
		err := sendTagged(ctx, j.ends[0], 1, match, tagged(n, size))
		cancel()
		switch {
		case err == nil:
			n++
		case !errors.Is(err, context.DeadlineExceeded) || j.ctx.Err() != nil:
			j.Fatalf("with %d unreceived messages of %d bytes: %v", n, size, err)
		case n >= least:
			return n
		}
		if cost := n * (size + transport.MessageCost); cost > transport.TaggedMax {
			j.Fatalf("with %d unreceived messages of %d bytes, another is copied", n-1, size)
		}
	}
}

// untilTagged returns when all tagged messages that rank 0 has sent have arrived: one
// that it sends now has. Rank 1 receives this one.
func (j *job) untilTagged() {
	j.Helper()
	last := transport.Match{Context: match.Context + 1, Tag: match.Tag}
	sent := cluster.Begin(j.ctx, func(ctx context.Context) error { return sendTagged(ctx, j.ends[0], 1, last, nil) })
	if err := errors.Join(recvTagged(j.ctx, j.ends[1], 0, last, nil), <-sent); err != nil {
		j.Fatal(err)
	}
}

// testReleaseTagged fills the bound of tagged messages twice.
func testReleaseTagged(t *testing.T, start Start) {
	j := open(t, start, 2)
	for range 2 {
		j.sendTaggedUntilFull(60<<10, 8)
		j.untilTagged()
		j.ends[1].Release(match.Context)
		if info, found, err := j.ends[1].Probe(j.ctx, 0, match, false); found || err != nil {
			t.Fatalf("after the release: %+v, %v, %v", info, found, err)
		}
	}
}

func testTaggedCounted(t *testing.T, start Start) {
	for _, size := range []int{200, 60 << 10} {
		cost := size + transport.MessageCost
		least := transport.TaggedMax / 2 / cost
		j := open(t, start, 2)
		n := j.sendTaggedUntilFull(size, least)
		j.untilTagged()
		if held := j.ends[1].Held().Tagged; held < n*cost || held > transport.TaggedMax {
			t.Errorf("%d messages of %d bytes: %d bytes are held", n, size, held)
		}
		for i := range n {
			if err := recvTagged(j.ctx, j.ends[1], 0, match, tagged(i, size)); err != nil {
				t.Fatalf("message %d: %v", i, err)
			}
		}
		if held := j.ends[1].Held(); held != (transport.Held{}) {
			t.Errorf("everything is received, and %+v is held", held)
		}
	}
}
