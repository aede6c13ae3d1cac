package transporttest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
)

// endClaims: how an endpoint's part in a job ends, and who hears of it.
var endClaims = []claim{
	{"ACancelledExchangeReturnsAndPeersAreTold", testCancel},
	{"AnEndedContextFailsAnExchange", testEndedContext},
	{"AContextThatEndsBetweenExchangesHarmsNobody", testContextBetween},
	{"AFailureEndsTheWholeEndpoint", testFailureIsFinal},
	{"APeerThatCloses", testPeerCloses},
	{"APeerThatClosesLeavesTheOthersTheirJob", testOthersGoOn},
	{"WhatWasSentBeforeCloseArrives", testSentBeforeClose},
	{"ARankThatHasAllItWantsMayClose", testReceivedBeforeClose},
	{"CloseEndsTheExchangesInProgress", testCloseDuring},
	{"UseAfterClose", testClosed},
}

// moment is long enough for another rank to be in the middle of a step. The
// claims hold whether it is or not.
const moment = 5 * time.Millisecond

func testCancel(t *testing.T, start Start) {
	for _, test := range []struct {
		name    string
		size    int // of rank 0's messages
		waiting func(ctx context.Context, e transport.Endpoint, data []byte) error
		told    []error
	}{
		{"receive", 1, func(ctx context.Context, e transport.Endpoint, data []byte) error {
			return recv(ctx, e, sig, 1, data)
		}, []error{transport.ErrAborted}},
		{"swap", 1, func(ctx context.Context, e transport.Endpoint, data []byte) error {
			return swap(ctx, e, sig, 1)
		}, []error{transport.ErrAborted}},
		{"large send", 32 << 20, func(ctx context.Context, e transport.Endpoint, data []byte) error {
			return send(ctx, e, sig, 1, data)
		}, []error{transport.ErrAborted, transport.ErrLost}}, // a message cut in two leaves no room for a last word
	} {
		t.Run(test.name, func(t *testing.T) {
			j := open(t, start, 3)
			cancelled := make(chan struct{})
			errs := j.all(
				func(ctx context.Context, e transport.Endpoint) error {
					defer close(cancelled)
					ctx, cancel := context.WithCancel(ctx)
					time.AfterFunc(moment, cancel)
					return test.waiting(ctx, e, make([]byte, test.size))
				},
				func(ctx context.Context, e transport.Endpoint) error {
					<-cancelled // told although it comes later
					into := make([]byte, test.size)
					for { // what is on its way may still arrive
						if err := recv(ctx, e, sig, 0, into); err != nil {
							return err
						}
					}
				},
				func(ctx context.Context, e transport.Endpoint) error {
					return recv(ctx, e, sig, 0, make([]byte, 1)) // told while it waits
				},
			)
			if !errors.Is(errs[0], context.Canceled) {
				t.Errorf("got %v, want %v", errs[0], context.Canceled)
			}
			checkPeer(t, errs[1], 0, test.told...)
			checkPeer(t, errs[2], 0, transport.ErrAborted)
		})
	}
	t.Run("deadline", func(t *testing.T) {
		j := open(t, start, 2)
		ctx, cancel := context.WithTimeout(j.ctx, moment)
		defer cancel()
		if err := recv(ctx, j.ends[0], sig, 1, make([]byte, 1)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
		}
	})
}

func testEndedContext(t *testing.T, start Start) {
	j := open(t, start, 2)
	ctx, cancel := context.WithCancel(j.ctx)
	cancel()
	if err := swap(ctx, j.ends[0], sig, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	checkPeer(t, swap(j.ctx, j.ends[1], sig, 0), 0, transport.ErrAborted)
}

func testContextBetween(t *testing.T, start Start) {
	open(t, start, 2).each(func(ctx context.Context, e transport.Endpoint) error {
		for range 20 {
			ctx, cancel := context.WithCancel(ctx)
			err := swap(ctx, e, sig, 1-e.Rank())
			cancel()
			if err != nil {
				return err
			}
		}
		return swap(ctx, e, sig, 1-e.Rank())
	})
}

// testFailureIsFinal cancels one of two contexts that wait on one endpoint.
func testFailureIsFinal(t *testing.T, start Start) {
	j := open(t, start, 3)
	e := j.ends[0]
	ctx, cancel := context.WithCancel(j.ctx)
	defer cancel()
	other := sig
	other.Context++
	waiting := make(chan error, 1)
	go func() { waiting <- recv(j.ctx, e, other, 2, make([]byte, 1)) }()
	time.AfterFunc(moment, cancel)

	first := swap(ctx, e, sig, 1)
	if !errors.Is(first, context.Canceled) {
		t.Errorf("got %v, want %v", first, context.Canceled)
	}
	if err := <-waiting; !errors.Is(err, context.Canceled) {
		t.Errorf("the other context got %v, want %v", err, context.Canceled)
	}
	for range 2 {
		if err := swap(j.ctx, e, sig, 2); err == nil || err.Error() != first.Error() {
			t.Errorf("a later exchange got %v, want %v again", err, first)
		}
	}
}

func testPeerCloses(t *testing.T, start Start) {
	recvFrom1 := func(ctx context.Context, e transport.Endpoint) error {
		// A second receive, from a rank that stays, must not keep the
		// first from being noticed.
		return e.Exchange(ctx, transport.Step{Signature: sig, Recvs: []transport.Recv{
			{From: 2, Into: make([]byte, 1)}, {From: 1, Into: make([]byte, 1)},
		}})
	}
	sendTo1 := func(ctx context.Context, e transport.Endpoint) error {
		for { // a transport may complete a few before it knows
			if err := send(ctx, e, sig, 1, make([]byte, 1000)); err != nil {
				return err
			}
		}
	}
	for _, test := range []struct {
		name    string
		waiting part
		late    bool // the peer closes when the exchange is under way
		met     bool // the two have talked before
	}{
		{"before I receive", recvFrom1, false, true},
		{"while I receive", recvFrom1, true, true},
		{"before I send", sendTo1, false, true},
		{"while I send", sendTo1, true, true},
		{"before we ever talked", recvFrom1, false, false},
		{"while I wait for its first word", recvFrom1, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			j := open(t, start, 3)
			closed := make(chan struct{})
			errs := j.all(
				func(ctx context.Context, e transport.Endpoint) error {
					if test.met {
						if err := swap(ctx, e, sig, 1); err != nil {
							return err
						}
					}
					if !test.late {
						<-closed
					}
					return test.waiting(ctx, e)
				},
				func(ctx context.Context, e transport.Endpoint) error {
					if test.met {
						if err := swap(ctx, e, sig, 0); err != nil {
							return err
						}
					}
					if test.late {
						time.Sleep(moment)
					}
					defer close(closed)
					return e.Close()
				},
			)
			if errs[1] != nil {
				t.Errorf("rank 1: %v", errs[1])
			}
			want := []error{transport.ErrLeft}
			if !test.met {
				// Nothing need tie the two together yet.
				want = append(want, transport.ErrLost)
			}
			checkPeer(t, errs[0], 1, want...)
		})
	}
}

func testOthersGoOn(t *testing.T, start Start) {
	j := open(t, start, 3)
	j.each(func(ctx context.Context, e transport.Endpoint) error {
		for d := 1; d < 3; d++ {
			to, from := (e.Rank()+d)%3, (e.Rank()+3-d)%3
			err := e.Exchange(ctx, transport.Step{
				Signature: sig,
				Sends:     []transport.Send{{To: []int{to}}},
				Recvs:     []transport.Recv{{From: from}},
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err := j.ends[1].Close(); err != nil {
		t.Fatal(err)
	}
	stay := func(ctx context.Context, e transport.Endpoint) error {
		for range 100 {
			if err := swap(ctx, e, sig, 2-e.Rank()); err != nil {
				return err
			}
		}
		return nil
	}
	errs := j.all(stay, nil, stay)
	for rank, err := range errs {
		if err != nil {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

func testSentBeforeClose(t *testing.T, start Start) {
	const messages = 10
	for _, size := range []int{0, 1, 1000, 200_000} {
		j := open(t, start, 2)
		errs := j.all(
			func(ctx context.Context, e transport.Endpoint) error {
				for i := range messages {
					if err := send(ctx, e, sig, 1, pattern(make([]byte, size), i)); err != nil {
						return err
					}
				}
				return e.Close()
			},
			func(ctx context.Context, e transport.Endpoint) error {
				into := make([]byte, size)
				for i := range messages {
					if err := recv(ctx, e, sig, 0, into); err != nil {
						return fmt.Errorf("message %d of %d bytes: %w", i, size, err)
					}
					if string(into) != string(pattern(make([]byte, size), i)) {
						return fmt.Errorf("message %d of %d bytes is not the one sent", i, size)
					}
				}
				err := recv(ctx, e, sig, 0, into)
				checkPeer(t, err, 0, transport.ErrLeft)
				return nil
			},
		)
		for rank, err := range errs {
			if err != nil {
				t.Errorf("rank %d: %v", rank, err)
			}
		}
	}
}

// testReceivedBeforeClose has the receiver close so soon that the sender may
// find it gone when its message has just been taken.
func testReceivedBeforeClose(t *testing.T, start Start) {
	for round := range 60 {
		data := make([]byte, []int{1, 500, 5000}[round%3])
		errs := open(t, start, 2).all(
			func(ctx context.Context, e transport.Endpoint) error { return send(ctx, e, sig, 1, data) },
			func(ctx context.Context, e transport.Endpoint) error {
				if err := recv(ctx, e, sig, 0, make([]byte, len(data))); err != nil {
					return err
				}
				return e.Close()
			},
		)
		for rank, err := range errs {
			if err != nil {
				t.Fatalf("%d bytes: rank %d: %v", len(data), rank, err)
			}
		}
	}
}

func testCloseDuring(t *testing.T, start Start) {
	j := open(t, start, 2)
	e := j.ends[0]
	time.AfterFunc(moment, func() { e.Close() })
	if err := recv(j.ctx, e, sig, 1, make([]byte, 1)); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("got %v, want %v", err, transport.ErrClosed)
	}
}

func testClosed(t *testing.T, start Start) {
	j := open(t, start, 2)
	for range 2 {
		if err := j.ends[0].Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	for name, step := range map[string]transport.Step{
		"empty":   {Signature: sig},
		"send":    {Signature: sig, Sends: []transport.Send{{To: []int{1}}}},
		"receive": {Signature: sig, Recvs: []transport.Recv{{From: 1}}},
	} {
		if err := j.ends[0].Exchange(j.ctx, step); !errors.Is(err, transport.ErrClosed) {
			t.Errorf("%s: got %v, want %v", name, err, transport.ErrClosed)
		}
	}
}
