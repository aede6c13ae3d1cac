package transporttest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/cluster"
)

// leavingClaims: what Close promises about messages that were sent and completed. A
// transport whose memory takes more than these claims send may close at once.
var leavingClaims = []claim{
	{"WhatWasSentArrivesHoweverLateItsReceiverComes", testLateReceiver},
	{"CloseDoesNotWaitForAReceiverThatHasLeft", testReceiverHasLeft},
	{"CloseEndsTheWaitsForTaggedMessages", testCloseDuringRecv},
	{"WhatWasSentArrivesThoughCloseEndsAnExchange", testCloseDuringExchange},
	{"CloseInTheMiddleOfAMessageSaysWhatItLoses", testCloseInsideMessage},
	{"WaitingForARankThatLeavesFailsThoughItLingers", testWaitDuringClose},
	{"ALongMessageArrivesThoughItsSenderLeavesAtOnce", testLeaveAfterLongTagged},
	{"AbortEndsTheWaitOfClose", testAbortDuringClose},
	{"ASecondCloseDoesNotWait", testSecondClose},
}

// later is how long a receiver computes before it receives: longer than any leaving
// rank takes that does not wait for its receivers.
const later = 1500 * time.Millisecond

// leavingTagged is what the claims send: nearly as much as the credits of a sender
// allow.
var leavingTagged = slices.Concat(taggedList(300, 500, 1), taggedList(10, 60<<10, 0))

// testLateReceiver has rank 0 send and leave while rank 1 computes.
func testLateReceiver(t *testing.T, start Start) {
	t.Parallel() // it sleeps
	const messages = 10
	step := func(i int) []byte { return pattern(make([]byte, 1000), i) }
	j := open(t, start, 2)
	closed := cluster.Begin(j.ctx, func(ctx context.Context) error {
		e := j.ends[0]
		for i := range messages {
			if err := send(ctx, e, sig, 1, step(i)); err != nil {
				return err
			}
		}
		return errors.Join(sendList(ctx, e, 1, leavingTagged), e.Close())
	})
	time.Sleep(later)
	for i := range messages {
		into := make([]byte, 1000)
		if err := recv(j.ctx, j.ends[1], sig, 0, into); err != nil || string(into) != string(step(i)) {
			t.Fatalf("message %d: another arrived, or %v", i, err)
		}
	}
	if err := recvList(j.ctx, j.ends[1], 0, leavingTagged); err != nil {
		t.Fatal(err)
	}
	if err := <-closed; err != nil {
		t.Errorf("rank 0: %v", err)
	}
	checkPeer(t, recv(j.ctx, j.ends[1], sig, 0, nil), 0, transport.ErrLeft)
}

// beginClose has rank 0 leave.
func beginClose(j *job) <-chan error {
	return cluster.Begin(j.ctx, func(context.Context) error { return j.ends[0].Close() })
}

// leave has rank 0 send and leave. Rank 1 receives nothing.
func leave(t *testing.T, start Start) (j *job, closed <-chan error) {
	t.Helper()
	j = open(t, start, 2)
	if err := sendList(j.ctx, j.ends[0], 1, leavingTagged); err != nil {
		t.Fatal(err)
	}
	return j, beginClose(j)
}

func testReceiverHasLeft(t *testing.T, start Start) {
	j, closed := leave(t, start)
	if err := j.ends[1].Close(); err != nil {
		t.Errorf("rank 1: Close: %v", err)
	}
	if err := <-closed; err != nil {
		t.Errorf("rank 0: Close: %v", err)
	}
}

// testCloseDuringRecv has a goroutine of rank 0 wait for a message of rank 1, which may
// be the rank that Close waits for.
func testCloseDuringRecv(t *testing.T, start Start) {
	j := open(t, start, 2)
	if err := sendList(j.ctx, j.ends[0], 1, leavingTagged); err != nil {
		t.Fatal(err)
	}
	received := cluster.Begin(j.ctx, func(ctx context.Context) error {
		return recvTagged(ctx, j.ends[0], 1, match, nil)
	})
	closed := beginClose(j)
	if err := <-received; !errors.Is(err, transport.ErrClosed) {
		t.Errorf("the receive of a rank that leaves ends with %v, want %v", err, transport.ErrClosed)
	}
	if err := recvList(j.ctx, j.ends[1], 0, leavingTagged); err != nil {
		t.Error(err)
	}
	if err := <-closed; err != nil {
		t.Errorf("Close: %v", err)
	}
}

// testCloseDuringExchange has a goroutine of rank 0 be in a step with rank 1, which takes no
// part in it and computes.
func testCloseDuringExchange(t *testing.T, start Start) {
	t.Parallel() // it sleeps
	j := open(t, start, 2)
	if err := sendList(j.ctx, j.ends[0], 1, leavingTagged); err != nil {
		t.Fatal(err)
	}
	exchanged := cluster.Begin(j.ctx, func(ctx context.Context) error {
		return recv(ctx, j.ends[0], sig, 1, make([]byte, 8))
	})
	j.awaitStalls(j.ends[0], transport.Stall{Signature: sig, Peers: []int{1}})
	closed := beginClose(j)
	if err := <-exchanged; !errors.Is(err, transport.ErrClosed) {
		t.Errorf("the Exchange of a rank that leaves ends with %v, want %v", err, transport.ErrClosed)
	}
	time.Sleep(later)
	if err := recvList(j.ctx, j.ends[1], 0, leavingTagged); err != nil {
		t.Error(err)
	}
	if err := <-closed; err != nil {
		t.Errorf("Close: %v", err)
	}
}

// testCloseInsideMessage has a goroutine of rank 0 be in the middle of a message to rank 1, which is
// longer than all that the systems and the endpoints keep of it in time.
func testCloseInsideMessage(t *testing.T, start Start) {
	t.Parallel() // it sleeps
	j := open(t, start, 2)
	if err := sendList(j.ctx, j.ends[0], 1, leavingTagged); err != nil {
		t.Fatal(err)
	}
	exchanged := cluster.Begin(j.ctx, func(ctx context.Context) error {
		return send(ctx, j.ends[0], sig, 1, make([]byte, underWay))
	})
	j.awaitStalls(j.ends[0], transport.Stall{Signature: sig, Peers: []int{1}})
	closed := beginClose(j)
	if err := <-exchanged; !errors.Is(err, transport.ErrClosed) {
		t.Fatalf("the Exchange of a rank that leaves ends with %v, want %v", err, transport.ErrClosed)
	}
	time.Sleep(later)
	received := recvList(j.ctx, j.ends[1], 0, leavingTagged)
	var undelivered *transport.UndeliveredError
	if err := <-closed; received != nil && !errors.As(err, &undelivered) {
		t.Errorf("Close: %v, although: %v", err, received)
	}
}

// testWaitDuringClose has rank 2 wait for a step of rank 0, which sends no more, and
// whose messages to rank 1, of another communicator, are not received.
func testWaitDuringClose(t *testing.T, start Start) {
	for name, wait := range map[string]rankFunc{
		"receive": func(ctx context.Context, e transport.Endpoint) error {
			return recv(ctx, e, inCommunicator(revoked), 0, nil)
		},
		"send": func(ctx context.Context, e transport.Endpoint) (err error) {
			for err == nil {
				err = send(ctx, e, inCommunicator(revoked), 0, make([]byte, 1<<20))
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			j := open(t, start, 3)
			connect := func(ctx context.Context, e transport.Endpoint) error { return swap(ctx, e, sig, 2-e.Rank()) }
			j.mustAll(connect, nil, connect)
			if err := sendList(j.ctx, j.ends[0], 1, leavingTagged); err != nil {
				t.Fatal(err)
			}
			closed := beginClose(j)
			checkPeer(t, wait(j.ctx, j.ends[2]), 0, transport.ErrLeft)
			if err := recvList(j.ctx, j.ends[1], 0, leavingTagged); err != nil {
				t.Error(err)
			}
			if err := <-closed; err != nil {
				t.Errorf("Close: %v", err)
			}
		})
	}
}

// testAbortDuringClose gives up while rank 0 leaves. If Close waits, it returns what was
// not delivered, and the receiver gets what was, and then the reason.
func testAbortDuringClose(t *testing.T, start Start) {
	t.Parallel() // it sleeps
	j, closed := leave(t, start)
	e := j.ends[0]
	j.until(func() bool { // Close has begun
		return errors.Is(e.Exchange(j.ctx, transport.Step{Signature: sig}), transport.ErrClosed)
	})
	e.Abort(errors.New("no patience"))
	checkUndelivered(j, <-closed, "no patience")
}

// checkUndelivered tests what Close of rank 0 has returned, and that rank 1 receives
// everything, or an error with the reason.
func checkUndelivered(j *job, closed error, reason string) {
	j.Helper()
	err := recvList(j.ctx, j.ends[1], 0, leavingTagged)
	var u *transport.UndeliveredError
	switch {
	case closed == nil && err != nil:
		j.Errorf("rank 0 has left in peace, and a message did not arrive: %v", err)
	case closed == nil:
	case !errors.As(closed, &u) || u.Rank != 0 || u.Peer != 1 || u.Bytes < 1:
		j.Errorf("Close: %v, want %v", closed, &transport.UndeliveredError{Peer: 1})
	case err == nil: // everything did arrive, after all
	case errors.Is(err, transport.ErrLost): // rank 1 has not even taken the reason, and finds a broken connection
	default:
		checkReason(j.T, err, 0, transport.ErrAborted, reason)
	}
}

func testSecondClose(t *testing.T, start Start) {
	j, closed := leave(t, start)
	j.until(func() bool { // Close has begun
		return errors.Is(j.ends[0].Exchange(j.ctx, transport.Step{Signature: sig}), transport.ErrClosed)
	})
	if err := j.ends[0].Close(); err != nil {
		t.Errorf("the second Close: %v", err)
	}
	if err := recvList(j.ctx, j.ends[1], 0, leavingTagged); err != nil {
		t.Error(err)
	}
	if err := <-closed; err != nil {
		t.Errorf("the first Close: %v", err)
	}
}

// RunLingering tests that endpoints that linger for a millisecond return an
// [transport.UndeliveredError] from Close if they have not delivered everything by
// then. It returns whether they had not.
func RunLingering(t *testing.T, start Start) (undelivered bool) {
	t.Run("CloseSaysWhatItCouldNotDeliver", func(t *testing.T) {
		j, closing := leave(t, start)
		closed := <-closing
		checkUndelivered(j, closed, transport.ErrLinger.Error())
		if undelivered = closed != nil; undelivered && !errors.Is(closed, transport.ErrLinger) {
			t.Errorf("Close: %v, want %v", closed, transport.ErrLinger)
		}
	})
	return undelivered
}

// The end of the message and the end of the sender come at the same time, while other
// goroutines of the receiver use its endpoint.
func testLeaveAfterLongTagged(t *testing.T, start Start) {
	m := transport.Match{Context: 1, Tag: 1}
	times := 50
	if UnderRace {
		times = 10
	}
	for i := 0; i < times && !t.Failed(); i++ {
		t.Run("", func(t *testing.T) {
			j := open(t, start, 2)
			received := make(chan bool)
			var others sync.WaitGroup
			others.Go(func() {
				for {
					select {
					case <-received:
						return
					default:
						j.ends[1].Stalls()
					}
				}
			})
			j.mustAll(func(ctx context.Context, e transport.Endpoint) error {
				if err := e.Send(ctx, 1, m, "byte", make([]byte, 1<<20)); err != nil {
					return err
				}
				return e.Close()
			}, func(ctx context.Context, e transport.Endpoint) error {
				defer close(received)
				_, err := e.Recv(ctx, 0, m, "byte", make([]byte, 1<<20))
				return err
			})
			others.Wait()
		})
	}
}
