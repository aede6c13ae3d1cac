package transporttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/cluster"
)

// startedClaims: tagged messages that are started and waited for later.
var startedClaims = []claim{
	{"StartedMessagesOfEverySizeArrive", testStartedSizes},
	{"StartedReceivesMatchInTheOrderInWhichTheyWerePosted", testPostedOrder},
	{"AReceiveFromAnyRankTakesItsTurnAmongTheOthers", testPostedAnyOrder},
	{"StartedSendsArriveInTheOrderInWhichTheyWereStarted", testStartedOrder},
	{"ARankThatWaitsMakesProgressForAllThatItHasStarted", testProgressOfAll},
	{"ARankThatLooksForAMessageMakesProgressForOthers", testProgressOfLooks},
	{"ProgressLetsARequestEndWithoutWaiting", testProgress},
	{"AMessageThatAPostedReceiveCannotTakeGoesToTheNext", testPostedMisfit},
	{"ARequestIsCanceledAlone", testCancelRequest},
	{"TheEndOfAContextEndsItsRequestsAlone", testRequestContext},
	{"ARequestEndsWhenItsPeerLeaves", testRequestPeerLeaves},
	{"CloseEndsRequestsInProgress", testCloseRequests},
}

// startedMessage is a request with its memory.
type startedMessage struct {
	transport.Request
	buf []byte
}

func startSend(ctx context.Context, e transport.Endpoint, to int, m transport.Match, data []byte) *startedMessage {
	r := &startedMessage{buf: data}
	e.StartSend(ctx, &r.Request, to, m, "bytes", data)
	return r
}

func startRecv(ctx context.Context, e transport.Endpoint, from int, m transport.Match, size int) *startedMessage {
	r := &startedMessage{buf: make([]byte, size)}
	e.StartRecv(ctx, &r.Request, from, m, "bytes", r.buf)
	return r
}

// waitFor waits for requests, the last one first, and returns their errors.
func waitFor(e transport.Endpoint, requests ...*startedMessage) error {
	var errs []error
	for i := len(requests) - 1; i >= 0; i-- {
		e.Wait(&requests[i].Request)
		if !requests[i].Done() {
			errs = append(errs, errors.New("a request is waited for, and not done"))
			continue
		}
		errs = append(errs, requests[i].Err)
	}
	return errors.Join(errs...)
}

// has reports whether a receive that is done has a message of a rank.
func (r *startedMessage) has(from int, want []byte) error {
	if r.Info.From != from || r.Info.Size != len(want) || !bytes.Equal(r.buf[:len(want)], want) {
		return fmt.Errorf("received another message, %+v", r.Info)
	}
	return nil
}

func testStartedSizes(t *testing.T, start Start) {
	for _, from := range []int{0, transport.Any} { // 0 stands for the peer
		open(t, start, 2).each(func(ctx context.Context, e transport.Endpoint) error {
			for i, size := range taggedSizes {
				for _, peer := range []int{1 - e.Rank(), e.Rank()} {
					m := transport.Match{Context: match.Context, Tag: 3 * i}
					if peer == e.Rank() {
						m.Tag += 1 + e.Rank()
					}
					source := peer
					if from == transport.Any {
						source = from
					}
					r := startRecv(ctx, e, source, m, size+1)
					s := startSend(ctx, e, peer, m, tagged(peer, size))
					if err := errors.Join(waitFor(e, r, s), r.has(peer, tagged(e.Rank(), size))); err != nil {
						return fmt.Errorf("%d bytes to rank %d: %w", size, peer, err)
					}
				}
			}
			return nil
		})
	}
}

func testPostedOrder(t *testing.T, start Start) {
	for _, size := range []int{8, 5000, 200_000} {
		open(t, start, 2).each(func(ctx context.Context, e transport.Endpoint) error {
			const n = 20
			peer := 1 - e.Rank()
			anyTag := transport.Match{Context: match.Context, Tag: transport.Any}
			var posted, sent []*startedMessage
			for i := range n {
				m := match
				if i%3 == 0 {
					m = anyTag
				}
				posted = append(posted, startRecv(ctx, e, peer, m, size))
			}
			for i := range n {
				sent = append(sent, startSend(ctx, e, peer, match, tagged(i, size)))
			}
			if err := errors.Join(waitFor(e, posted...), waitFor(e, sent...)); err != nil {
				return err
			}
			for i, r := range posted {
				if err := r.has(peer, tagged(i, size)); err != nil {
					return fmt.Errorf("receive %d of %d bytes: %w", i, size, err)
				}
			}
			return nil
		})
	}
}

// testPostedAnyOrder posts receives from a rank and from any by turns: that rank's
// messages go to both in order.
func testPostedAnyOrder(t *testing.T, start Start) {
	open(t, start, 2).mustAll(func(ctx context.Context, e transport.Endpoint) error {
		if err := recvTagged(ctx, e, 1, match, nil); err != nil {
			return err
		}
		for i := range 10 {
			if err := sendTagged(ctx, e, 1, match, tagged(i, 100)); err != nil {
				return err
			}
		}
		return nil
	}, func(ctx context.Context, e transport.Endpoint) error {
		var posted []*startedMessage
		for i := range 10 {
			posted = append(posted, startRecv(ctx, e, []int{0, transport.Any}[i%2], match, 100))
		}
		err := errors.Join(sendTagged(ctx, e, 0, match, nil), waitFor(e, posted...))
		for i, r := range posted {
			err = errors.Join(err, r.has(0, tagged(i, 100)))
		}
		return err
	})
}

func testStartedOrder(t *testing.T, start Start) {
	open(t, start, 2).mustAll(func(ctx context.Context, e transport.Endpoint) error {
		var sent []*startedMessage
		for i := range 60 { // more than a transport has room for, and of all protocols
			sent = append(sent, startSend(ctx, e, 1, match, tagged(i, taggedSizes[i%len(taggedSizes)]/4)))
		}
		return waitFor(e, sent...)
	}, func(ctx context.Context, e transport.Endpoint) error {
		for i := range 60 {
			if err := recvTagged(ctx, e, 0, match, tagged(i, taggedSizes[i%len(taggedSizes)]/4)); err != nil {
				return fmt.Errorf("message %d: %w", i, err)
			}
		}
		return nil
	})
}

// testProgressOfAll has rank 0 start messages with rank 1, and wait for rank 2, which
// goes on only when rank 1 has received and sent them.
func testProgressOfAll(t *testing.T, start Start) {
	const long = 3 << 20
	waits := map[string]func(ctx context.Context, e transport.Endpoint) error{
		"Recv": func(ctx context.Context, e transport.Endpoint) error {
			return recvTagged(ctx, e, 2, match, tagged(9, 10))
		},
		"Recv from any": func(ctx context.Context, e transport.Endpoint) error {
			m := match
			m.Tag++
			return errors.Join(recvTagged(ctx, e, transport.Any, m, nil), recvTagged(ctx, e, 2, match, tagged(9, 10)))
		},
		"Probe": func(ctx context.Context, e transport.Endpoint) error {
			_, _, err := e.Probe(ctx, 2, match, true)
			return errors.Join(err, recvTagged(ctx, e, 2, match, tagged(9, 10)))
		},
		"Exchange": func(ctx context.Context, e transport.Endpoint) error {
			return errors.Join(recv(ctx, e, sig, 2, make([]byte, 10)), recvTagged(ctx, e, 2, match, tagged(9, 10)))
		},
	}
	for name, wait := range waits {
		t.Run(name, func(t *testing.T) {
			open(t, start, 3).mustAll(func(ctx context.Context, e transport.Endpoint) error {
				r, s := startRecv(ctx, e, 1, match, long), startSend(ctx, e, 1, match, tagged(1, long))
				return errors.Join(wait(ctx, e), waitFor(e, r, s), r.has(1, tagged(2, long)))
			}, func(ctx context.Context, e transport.Endpoint) error {
				return errors.Join(
					recvTagged(ctx, e, 0, match, tagged(1, long)),
					sendTagged(ctx, e, 0, match, tagged(2, long)),
					sendTagged(ctx, e, 2, match, nil))
			}, func(ctx context.Context, e transport.Endpoint) error {
				err := recvTagged(ctx, e, 1, match, nil)
				m := match
				m.Tag++
				switch name {
				case "Recv from any":
					err = errors.Join(err, sendTagged(ctx, e, 0, m, nil))
				case "Exchange":
					err = errors.Join(err, send(ctx, e, sig, 0, tagged(9, 10)))
				}
				return errors.Join(err, sendTagged(ctx, e, 0, match, tagged(9, 10)))
			})
		})
	}
}

// The peer sends what this rank looks for when the message before has been received, for which
// nobody waits. Each look may have seen the announcement before or after the receive was posted.
func testProgressOfLooks(t *testing.T, start Start) {
	next := transport.Match{Context: match.Context, Tag: match.Tag + 1}
	looks := map[string]func(ctx context.Context, e transport.Endpoint) (bool, error){
		"Probe": func(ctx context.Context, e transport.Endpoint) (bool, error) {
			_, found, err := e.Probe(ctx, 0, next, false)
			return found, err
		},
		"TryRecv": func(ctx context.Context, e transport.Endpoint) (bool, error) {
			_, found, err := e.TryRecv(ctx, 0, next, "bytes", nil)
			return found, err
		},
	}
	for name, look := range looks {
		for _, announced := range []bool{false, true} {
			j := open(t, start, 2)
			data := tagged(1, 200_000)
			sent := cluster.Begin(j.ctx, func(ctx context.Context) error {
				return errors.Join(sendTagged(ctx, j.ends[0], 1, match, data), sendTagged(ctx, j.ends[0], 1, next, nil))
			})
			if announced {
				if _, _, err := j.ends[1].Probe(j.ctx, 0, match, true); err != nil {
					t.Fatal(err)
				}
			}
			r := startRecv(j.ctx, j.ends[1], 0, match, len(data))
			found, err := false, error(nil)
			for !found && err == nil && j.ctx.Err() == nil {
				runtime.Gosched()
				found, err = look(j.ctx, j.ends[1])
			}
			if err := errors.Join(err, j.ctx.Err()); err != nil {
				t.Fatalf("%s, announced %t: %v", name, announced, err)
			}
			if err := errors.Join(waitFor(j.ends[1], r), r.has(0, data)); err != nil {
				t.Errorf("%s, announced %t: %v", name, announced, err)
			}
			if name == "Probe" {
				if err := recvTagged(j.ctx, j.ends[1], 0, next, nil); err != nil {
					t.Error(err)
				}
			}
			if err := <-sent; err != nil {
				t.Error(err)
			}
		}
	}
}

func testProgress(t *testing.T, start Start) {
	open(t, start, 2).each(func(ctx context.Context, e transport.Endpoint) error {
		peer := 1 - e.Rank()
		r, s := startRecv(ctx, e, peer, match, 1<<20), startSend(ctx, e, peer, match, tagged(e.Rank(), 1<<20))
		for !r.Done() || !s.Done() {
			if e.Progress(); ctx.Err() != nil {
				return ctx.Err()
			}
		}
		return errors.Join(r.Err, s.Err, r.has(peer, tagged(peer, 1<<20)))
	})
}

func testPostedMisfit(t *testing.T, start Start) {
	open(t, start, 2).mustAll(func(ctx context.Context, e transport.Endpoint) error {
		return errors.Join(recvTagged(ctx, e, 1, match, nil), sendTagged(ctx, e, 1, match, tagged(1, 100)))
	}, func(ctx context.Context, e transport.Endpoint) error {
		short := startRecv(ctx, e, 0, match, 99)
		var words startedMessage
		e.StartRecv(ctx, &words.Request, 0, match, "words", make([]byte, 100))
		right := startRecv(ctx, e, transport.Any, match, 100)
		if err := errors.Join(sendTagged(ctx, e, 0, match, nil), waitFor(e, right), right.has(0, tagged(1, 100))); err != nil {
			return err
		}
		var size *transport.SizeError
		var kind *transport.TypeError
		if err := waitFor(e, short); !errors.As(err, &size) || short.Info.Size != 100 {
			return fmt.Errorf("100 bytes into 99: %+v, %v", short.Info, err)
		}
		if err := waitFor(e, &words); !errors.As(err, &kind) {
			return fmt.Errorf("bytes for words: %v", err)
		}
		return nil
	})
}

func testCancelRequest(t *testing.T, start Start) {
	why := errors.New("not wanted any more")
	open(t, start, 2).each(func(ctx context.Context, e transport.Endpoint) error {
		peer := 1 - e.Rank()
		other := func(i int) transport.Match { return transport.Match{Context: match.Context, Tag: match.Tag + i} }
		requests := []*startedMessage{
			startRecv(ctx, e, peer, other(1), 10),
			startRecv(ctx, e, transport.Any, other(2), 10),
			startSend(ctx, e, peer, other(3), tagged(1, 1<<20)),
			startSend(ctx, e, e.Rank(), other(4), tagged(1, 1<<20)),
		}
		for i, r := range requests {
			e.Cancel(&r.Request, why)
			if err := waitFor(e, r); !errors.Is(err, why) {
				return fmt.Errorf("request %d: got %v, want %v", i, err, why)
			}
		}
		return errors.Join(sendTagged(ctx, e, peer, match, tagged(1, 10)), recvTagged(ctx, e, peer, match, tagged(1, 10)))
	})
}

func testRequestContext(t *testing.T, start Start) {
	open(t, start, 2).each(func(ctx context.Context, e transport.Endpoint) error {
		peer := 1 - e.Rank()
		never := transport.Match{Context: match.Context, Tag: match.Tag + 1}
		short, cancel := context.WithCancel(ctx)
		r, s := startRecv(short, e, peer, never, 10), startSend(short, e, peer, transport.Match{Context: never.Context, Tag: never.Tag + 1}, tagged(1, 1<<20))
		other := startRecv(ctx, e, peer, match, 10)
		cancel()
		for _, c := range []*startedMessage{r, s} {
			if err := waitFor(e, c); !errors.Is(err, context.Canceled) {
				return fmt.Errorf("got %v, want %v", err, context.Canceled)
			}
		}
		return errors.Join(sendTagged(ctx, e, peer, match, tagged(1, 10)), waitFor(e, other), other.has(peer, tagged(1, 10)))
	})
}

func testRequestPeerLeaves(t *testing.T, start Start) {
	open(t, start, 2).mustAll(func(ctx context.Context, e transport.Endpoint) error {
		return errors.Join(recvTagged(ctx, e, 1, match, nil), sendTagged(ctx, e, 1, match, tagged(1, 10)), e.Close())
	}, func(ctx context.Context, e transport.Endpoint) error {
		first, second := startRecv(ctx, e, 0, match, 10), startRecv(ctx, e, 0, match, 10)
		s := startSend(ctx, e, 0, transport.Match{Context: match.Context, Tag: match.Tag + 1}, tagged(1, 1<<20))
		err := errors.Join(sendTagged(ctx, e, 0, match, nil), waitFor(e, first), first.has(0, tagged(1, 10)))
		for _, r := range []*startedMessage{second, s} {
			if why := waitFor(e, r); !errors.Is(why, transport.ErrLeft) {
				err = errors.Join(err, fmt.Errorf("got %v, want %v", why, transport.ErrLeft))
			}
		}
		return err
	})
}

func testCloseRequests(t *testing.T, start Start) {
	j := open(t, start, 2)
	e := j.ends[0]
	r, s := startRecv(j.ctx, e, 1, match, 10), startSend(j.ctx, e, 1, match, tagged(1, 1<<20))
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	for _, c := range []*startedMessage{r, s} {
		if err := waitFor(e, c); !errors.Is(err, transport.ErrClosed) {
			t.Errorf("got %v, want %v", err, transport.ErrClosed)
		}
	}
}
