package transporttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/cluster"
)

// anySourceClaims: receives and probes from any rank.
var anySourceClaims = []claim{
	{"ReceivesFromAnyRankEndEachWithItsContext", testAnyCanceled},
	{"EachOfManyReceivesFromAnyRankGetsItsMessage", testAnyEach},
	{"ReceivesFromOneRankAndFromAnyShareItsMessages", testAnyShared},
	{"ReceivingFromAnyFailsWhenAllOthersHaveLeft", testAllHaveLeft},
	{"AMessageOfARankThatHasLeftIsReceivedFromAny", testAnyAfterLeft},
	{"ReceivingFromAnyFailsWhenOneGivesUp", testAnyAborted},
}

// anyMatches differ in context and tag.
var anyMatches = []transport.Match{
	{Context: match.Context, Tag: 1}, {Context: match.Context, Tag: 2}, {Context: match.Context + 1, Tag: 1},
}

// testAnyCanceled has rank 0 wait in receives and probes that nothing matches. Each
// ends with its own context while the others wait on.
func testAnyCanceled(t *testing.T, start Start) {
	j := open(t, start, 3)
	e := j.ends[0]
	type waiting struct {
		cancel context.CancelFunc
		result <-chan error
	}
	var all []waiting
	for _, m := range anyMatches {
		for _, wait := range []rankFunc{
			func(ctx context.Context, e transport.Endpoint) error {
				return recvTagged(ctx, e, transport.Any, m, nil)
			},
			func(ctx context.Context, e transport.Endpoint) error {
				_, _, err := e.Probe(ctx, transport.Any, m, true)
				return err
			},
		} {
			ctx, cancel := context.WithCancel(j.ctx)
			defer cancel()
			all = append(all, waiting{cancel, cluster.Begin(ctx, func(ctx context.Context) error { return wait(ctx, e) })})
		}
	}
	slices.Reverse(all)
	for i, w := range all {
		w.cancel()
		select {
		case err := <-w.result:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("operation %d: got %v, want %v", i, err, context.Canceled)
			}
		case <-j.ctx.Done():
			t.Fatalf("operation %d does not end with its context", i)
		}
		// The others have not ended, and the endpoint is usable.
		for k, other := range all[i+1:] {
			select {
			case err := <-other.result:
				t.Fatalf("operation %d ended with %d: %v", i+1+k, i, err)
			default:
			}
		}
	}
	j.mustAll(func(ctx context.Context, e transport.Endpoint) error {
		return recvTagged(ctx, e, transport.Any, match, tagged(1, 10))
	}, func(ctx context.Context, e transport.Endpoint) error {
		return sendTagged(ctx, e, 0, match, tagged(1, 10))
	})
}

// testAnyEach begins the receives before the messages are sent, which come in the
// opposite order. Short and long messages come from both ranks.
func testAnyEach(t *testing.T, start Start) {
	const tags = 12
	data := func(tag int) []byte { return tagged(tag, []int{0, 100, 100 << 10}[tag%3]) }
	m := func(tag int) transport.Match { return transport.Match{Context: match.Context, Tag: tag} }
	j := open(t, start, 3)
	var received []<-chan error
	for tag := range tags {
		received = append(received, cluster.Begin(j.ctx, func(ctx context.Context) error {
			return recvTagged(ctx, j.ends[0], transport.Any, m(tag), data(tag))
		}))
	}
	send := func(ctx context.Context, e transport.Endpoint) error {
		for tag := tags - 1; tag >= 0; tag-- {
			if tag%2 == e.Rank()%2 {
				if err := sendTagged(ctx, e, 0, m(tag), data(tag)); err != nil {
					return err
				}
			}
		}
		return nil
	}
	j.mustAll(nil, send, send)
	for tag := range received {
		if err := <-received[tag]; err != nil {
			t.Errorf("tag %d: %v", tag, err)
		}
	}
}

// testAnyShared has several goroutines of rank 0 receive at once, from any rank and
// from one, while another probes. Every message is received once, and each goroutine
// gets those of one sender in order.
func testAnyShared(t *testing.T, start Start) {
	const n, each = 3, 90
	data := func(i int) []byte { return bytes.Repeat([]byte{byte(i)}, []int{1, 500, 70 << 10}[i%3]) }
	j := open(t, start, n)
	all, done := context.WithCancel(j.ctx) // until every message is received
	defer done()
	var mu sync.Mutex
	seen := map[[2]int]bool{} // sender and number
	receive := func(e transport.Endpoint, from int) error {
		last, into := map[int]int{}, make([]byte, 70<<10)
		for {
			info, err := e.Recv(all, from, match, "bytes", into)
			if err != nil {
				return err
			}
			i := int(into[0])
			if !bytes.Equal(into[:info.Size], data(i)) || i < last[info.From] {
				return fmt.Errorf("received %+v, message %d, after message %d of its sender", info, i, last[info.From])
			}
			last[info.From] = i
			mu.Lock()
			if seen[[2]int{info.From, i}] {
				err = fmt.Errorf("message %d of rank %d was received twice", i, info.From)
			}
			seen[[2]int{info.From, i}] = true
			if len(seen) == (n-1)*each {
				done()
			}
			mu.Unlock()
			if err != nil {
				return err
			}
		}
	}
	sender := func(ctx context.Context, e transport.Endpoint) error {
		for i := range each {
			if err := sendTagged(ctx, e, 0, match, data(i)); err != nil {
				return err
			}
		}
		return nil
	}
	j.mustAll(func(ctx context.Context, e transport.Endpoint) (errs error) {
		results := make(chan error, 4)
		for _, from := range []int{1, transport.Any, transport.Any} {
			go func() { results <- receive(e, from) }()
		}
		go func() {
			var err error
			for err == nil && all.Err() == nil {
				_, _, err = e.Probe(ctx, transport.Any, match, false)
			}
			results <- err
		}()
		for range cap(results) {
			if err := <-results; err != nil && (j.ctx.Err() != nil || !errors.Is(err, context.Canceled)) {
				errs = errors.Join(errs, err)
				done()
			}
		}
		return errs
	}, sender, sender)
}

// testAllHaveLeft closes ranks that have exchanged no message with the rank that
// waits.
func testAllHaveLeft(t *testing.T, start Start) {
	j := open(t, start, 4)
	errs := j.all(nil, nil, func(ctx context.Context, e transport.Endpoint) error {
		return recvTagged(ctx, e, transport.Any, match, nil)
	}, func(context.Context, transport.Endpoint) error {
		return errors.Join(j.ends[0].Close(), j.ends[3].Close(), j.ends[1].Close())
	})
	checkPeer(t, errs[2], 3, transport.ErrAllLeft)
	if errs[3] != nil {
		t.Error(errs[3])
	}
}

// testAnyAfterLeft has all senders leave before their messages are received.
func testAnyAfterLeft(t *testing.T, start Start) {
	const n, each = 4, 5
	j := open(t, start, n)
	leave := func(ctx context.Context, e transport.Endpoint) error {
		for i := range each {
			if err := sendTagged(ctx, e, 0, match, tagged(i, 1000)); err != nil {
				return err
			}
		}
		return nil
	}
	j.mustAll(nil, leave, leave, leave)
	var closed sync.WaitGroup // Close may return only when the messages are received
	for _, e := range j.ends[1:] {
		closed.Go(func() {
			if err := e.Close(); err != nil {
				t.Errorf("rank %d: Close: %v", e.Rank(), err)
			}
		})
	}
	next, into := make([]int, n), make([]byte, 1000)
	for range (n - 1) * each {
		info, err := j.ends[0].Recv(j.ctx, transport.Any, match, "bytes", into)
		if err != nil {
			t.Fatalf("after %v messages: %v", next, err)
		}
		if !bytes.Equal(into, tagged(next[info.From], 1000)) {
			t.Errorf("message %d of rank %d arrived changed", next[info.From], info.From)
		}
		next[info.From]++
	}
	checkPeer(t, recvTagged(j.ctx, j.ends[0], transport.Any, match, nil), 1, transport.ErrAllLeft)
	closed.Wait()
}

// testAnyAborted has rank 2 give up while rank 0 waits for a message of any rank, or
// before. A message of another communicator can still be received.
func testAnyAborted(t *testing.T, start Start) {
	const pair = 1 // the communicator of ranks 0 and 1
	for _, during := range []bool{true, false} {
		t.Run(fmt.Sprint("during=", during), func(t *testing.T) {
			j := open(t, start, 3)
			connect := func(ctx context.Context, e transport.Endpoint) error { return swap(ctx, e, sig, 2-e.Rank()) }
			j.mustAll(connect, nil, connect)
			begin := func() <-chan error {
				return cluster.Begin(j.ctx, func(ctx context.Context) error {
					return recvTagged(ctx, j.ends[0], transport.Any, match, nil)
				})
			}
			var received <-chan error
			if during {
				received = begin()
			}
			queued := transport.Match{Context: inCommunicator(pair).Context, Tag: match.Tag}
			for _, e := range j.ends[:2] {
				e.SetMembers(pair, []int{0, 1})
			}
			if err := sendTagged(j.ctx, j.ends[1], 0, queued, tagged(1, 10)); err != nil {
				t.Fatal(err)
			}
			if _, _, err := j.ends[0].Probe(j.ctx, 1, queued, true); err != nil {
				t.Fatal(err)
			}
			j.ends[2].Abort(errors.New("enough"))
			if !during {
				received = begin()
			}
			err := <-received
			checkReason(t, err, 2, transport.ErrAborted, "enough")
			if err := recvTagged(j.ctx, j.ends[0], transport.Any, queued, tagged(1, 10)); err != nil {
				t.Error(err)
			}
		})
	}
}
