package transporttest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/cluster"
)

// endClaims: an endpoint that closes, and the error that its peers get.
var endClaims = []claim{
	{"WaitingForARankThatClosesFails", testPeerCloses},
	{"TheOtherRanksContinueAfterOneCloses", testOthersContinue},
	{"MessagesSentBeforeCloseArrive", testSentBeforeClose},
	{"ARankMayCloseOnceItHasReceivedEverything", testReceivedBeforeClose},
	{"CloseEndsTheExchangesInProgress", testCloseDuring},
	{"UseAfterCloseIsErrClosed", testClosed},
	{"AContextMayBeReleasedAfterClose", testReleaseAfterClose},
}

// recvFrom1 also receives from rank 2, which stays: this must not keep the endpoint
// from noticing that rank 1 closes.
func recvFrom1(ctx context.Context, e transport.Endpoint) error {
	return e.Exchange(ctx, transport.Step{Signature: sig, Recvs: []transport.Recv{
		{From: 2, Into: make([]byte, 1)}, {From: 1, Into: make([]byte, 1)},
	}})
}

// sendTo1 sends until an Exchange fails: a transport may complete a few that their
// receiver never receives.
func sendTo1(ctx context.Context, e transport.Endpoint) error {
	for {
		if err := send(ctx, e, sig, 1, make([]byte, 1000)); err != nil {
			return err
		}
	}
}

func testPeerCloses(t *testing.T, start Start) {
	for _, test := range []struct {
		name      string
		operation rankFunc // of rank 0
		during    bool     // rank 1 closes during the operation, not before
		connected bool     // ranks 0 and 1 have exchanged messages before
	}{
		{"before a receive", recvFrom1, false, true},
		{"during a receive", recvFrom1, true, true},
		{"before a send", sendTo1, false, true},
		{"during a send", sendTo1, true, true},
		{"before the first receive", recvFrom1, false, false},
		{"during the first receive", recvFrom1, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			j := open(t, start, 3)
			if test.connected {
				connect := func(ctx context.Context, e transport.Endpoint) error { return swap(ctx, e, sig, 1-e.Rank()) }
				j.mustAll(connect, connect)
			}
			begin := func() <-chan error {
				return cluster.Begin(j.ctx, func(ctx context.Context) error { return test.operation(ctx, j.ends[0]) })
			}
			var ended <-chan error
			if test.during {
				ended = begin()
			}
			if err := j.ends[1].Close(); err != nil {
				t.Errorf("rank 1: %v", err)
			}
			if !test.during {
				ended = begin()
			}
			want := []error{transport.ErrLeft}
			if !test.connected {
				// Rank 1 may be unable to tell rank 0 that it closes.
				want = append(want, transport.ErrLost)
			}
			checkPeer(t, <-ended, 1, want...)
		})
	}
}

func testOthersContinue(t *testing.T, start Start) {
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
	j.mustAll(stay, nil, stay)
}

func testSentBeforeClose(t *testing.T, start Start) {
	const messages = 10
	for _, size := range []int{0, 1, 1000, 200_000} {
		open(t, start, 2).mustAll(
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
						return fmt.Errorf("message %d of %d bytes arrived changed", i, size)
					}
				}
				checkPeer(t, recv(ctx, e, sig, 0, into), 0, transport.ErrLeft)
				return nil
			},
		)
	}
}

// testReceivedBeforeClose has the receiver close so soon that the sender may find
// it gone just after its message was received.
func testReceivedBeforeClose(t *testing.T, start Start) {
	for round := range 60 {
		data := make([]byte, []int{1, 500, 5000}[round%3])
		open(t, start, 2).mustAll(
			func(ctx context.Context, e transport.Endpoint) error { return send(ctx, e, sig, 1, data) },
			func(ctx context.Context, e transport.Endpoint) error {
				if err := recv(ctx, e, sig, 0, make([]byte, len(data))); err != nil {
					return err
				}
				return e.Close()
			},
		)
	}
}

func testCloseDuring(t *testing.T, start Start) {
	j := open(t, start, 2)
	e := j.ends[0]
	received := cluster.Begin(j.ctx, func(ctx context.Context) error { return recv(ctx, e, sig, 1, make([]byte, 1)) })
	e.Close()
	if err := <-received; !errors.Is(err, transport.ErrClosed) {
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

// The context holds a tagged message that was not received.
func testReleaseAfterClose(t *testing.T, start Start) {
	j := open(t, start, 2)
	tag := transport.Match{Context: sig.Context + 1, Tag: 1}
	if err := j.ends[0].Send(j.ctx, 1, tag, "bytes", []byte{1}); err != nil {
		t.Fatal(err)
	}
	if _, found, err := j.ends[1].Probe(j.ctx, 0, tag, true); err != nil || !found {
		t.Fatalf("found %v, %v", found, err)
	}
	if err := j.ends[1].Close(); err != nil {
		t.Fatal(err)
	}
	j.ends[1].Release(tag.Context)
}
