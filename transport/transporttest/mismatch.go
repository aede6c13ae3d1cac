package transporttest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/chorale-go/chorale/transport"
)

// mismatchClaims: ranks that call different things get an error and never hang.
var mismatchClaims = []claim{
	{"ADifferentCallIsAMismatch", testOtherCall},
	{"ADifferentSequenceNumberIsAMismatch", testOtherSequence},
	{"AMismatchReachesRanksThatOnlySend", testOnlySend},
	{"AMismatchReachesRanksThatOnlyReceive", testOnlyReceive},
	{"AMismatchReachesARankThatWaitsForAThird", testWaitElsewhere},
	{"EqualSequenceNumbersOfTwoContextsAreNoMismatch", testSameSequence},
	{"AMessageOfTheWrongLengthIsASizeError", testOtherSize},
	{"AnImpossiblePeerIsARankError", testNoSuchPeer},
}

// callA and callB are two calls of one sequence number.
var (
	callA = transport.Signature{Context: 3, Sequence: 9, Call: "bcast int32 count=4 root=0"}
	callB = transport.Signature{Context: 3, Sequence: 9, Call: "reduce sum int32 count=4 root=1"}
)

// checkMismatch tests the errors at the two ends of a mismatch. At least one is a
// MismatchError; the other is one too, or says that the peer aborted.
func (j *job) checkMismatch(errs []error, rank, peer int, calls map[int]transport.Signature) {
	j.Helper()
	mismatches := 0
	for _, pair := range [][2]int{{rank, peer}, {peer, rank}} {
		me, other := pair[0], pair[1]
		var mismatch *transport.MismatchError
		var aborted *transport.PeerError
		switch err := errs[me]; {
		case errors.As(err, &mismatch):
			mismatches++
			want := transport.MismatchError{Rank: me, Peer: other, Mine: calls[me], Theirs: calls[other]}
			if *mismatch != want {
				j.Errorf("rank %d: got %v, want %v", me, mismatch, &want)
			}
		case errors.As(err, &aborted):
			if aborted.Peer != other || !errors.Is(err, transport.ErrAborted) {
				j.Errorf("rank %d: got %v, want a mismatch with rank %d, or that it aborted", me, err, other)
			}
		default:
			j.Errorf("rank %d: got %v, want a *MismatchError or a *PeerError", me, err)
		}
	}
	if mismatches == 0 {
		j.Errorf("neither rank %d nor rank %d got a *MismatchError: %v, %v", rank, peer, errs[rank], errs[peer])
	}
}

func testOtherCall(t *testing.T, start Start) {
	calls := map[int]transport.Signature{0: callA, 1: callB}
	j := open(t, start, 2)
	swapper := func(ctx context.Context, e transport.Endpoint) error {
		return swap(ctx, e, calls[e.Rank()], 1-e.Rank())
	}
	j.checkMismatch(j.all(swapper, swapper), 0, 1, calls)
}

func testOtherSequence(t *testing.T, start Start) {
	later := callA
	later.Sequence++
	calls := map[int]transport.Signature{0: callA, 1: later}
	j := open(t, start, 2)
	swapper := func(ctx context.Context, e transport.Endpoint) error {
		return swap(ctx, e, calls[e.Rank()], 1-e.Rank())
	}
	j.checkMismatch(j.all(swapper, swapper), 0, 1, calls)
}

// testOnlySend has neither rank receive. A transport may complete some sends
// without a receiver, but not endlessly many.
func testOnlySend(t *testing.T, start Start) {
	calls := map[int]transport.Signature{0: callA, 1: callB}
	j := open(t, start, 2)
	sender := func(ctx context.Context, e transport.Endpoint) error {
		data := make([]byte, 64<<10)
		for {
			if err := send(ctx, e, calls[e.Rank()], 1-e.Rank(), data); err != nil {
				return err
			}
		}
	}
	j.checkMismatch(j.all(sender, sender), 0, 1, calls)
}

// testOnlyReceive is a broadcast whose ranks disagree on the root: both wait, and
// no message is on its way.
func testOnlyReceive(t *testing.T, start Start) {
	calls := map[int]transport.Signature{0: callA, 1: callB}
	j := open(t, start, 2)
	receiver := func(ctx context.Context, e transport.Endpoint) error {
		return recv(ctx, e, calls[e.Rank()], 1-e.Rank(), make([]byte, 4))
	}
	j.checkMismatch(j.all(receiver, receiver), 0, 1, calls)
}

// testWaitElsewhere has rank 0 wait for rank 1. Rank 1 is in another call and waits
// for rank 2, which does nothing before the mismatch is found.
func testWaitElsewhere(t *testing.T, start Start) {
	calls := map[int]transport.Signature{0: callA, 1: callB}
	j := open(t, start, 3)
	found := make(chan struct{})
	errs := j.all(
		func(ctx context.Context, e transport.Endpoint) error { return swap(ctx, e, callA, 1) },
		func(ctx context.Context, e transport.Endpoint) error {
			defer close(found)
			return recv(ctx, e, callB, 2, make([]byte, 4))
		},
		func(ctx context.Context, e transport.Endpoint) error {
			<-found
			return swap(ctx, e, callB, 1)
		},
	)
	j.checkMismatch(errs, 0, 1, calls)
	if !errors.Is(errs[2], transport.ErrAborted) { // both others have given up
		t.Errorf("rank 2: got %v, want %v", errs[2], transport.ErrAborted)
	}
}

func testSameSequence(t *testing.T, start Start) {
	other := callB
	other.Context++
	open(t, start, 2).each(func(ctx context.Context, e transport.Endpoint) error {
		results := make(chan error, 2)
		for _, s := range []transport.Signature{callA, other} {
			go func() { results <- swap(ctx, e, s, 1-e.Rank()) }()
		}
		return errors.Join(<-results, <-results)
	})
}

func testOtherSize(t *testing.T, start Start) {
	for _, test := range []struct{ got, want int }{{3, 4}, {4, 3}, {0, 1}, {1, 0}, {100_000, 100_001}} {
		for _, combine := range []func(into, held, incoming []byte){nil, mix} {
			j := open(t, start, 2)
			errs := j.all(
				func(ctx context.Context, e transport.Endpoint) error {
					return e.Exchange(ctx, transport.Step{
						Signature: sig,
						Sends:     []transport.Send{{To: []int{1}, Data: make([]byte, test.got)}},
						Recvs:     []transport.Recv{{From: 1, Into: make([]byte, 1)}},
					})
				},
				func(ctx context.Context, e transport.Endpoint) error {
					into := make([]byte, test.want)
					return e.Exchange(ctx, transport.Step{Signature: sig, Recvs: []transport.Recv{
						{From: 0, Into: into, Held: into, Combine: combine, Elem: 1},
					}})
				},
			)
			var size *transport.SizeError
			if want := (transport.SizeError{Peer: 0, Got: test.got, Want: test.want}); !errors.As(errs[1], &size) || *size != want {
				t.Errorf("got %v, want %v", errs[1], &want)
			}
			checkPeer(t, errs[0], 1, transport.ErrAborted)
		}
	}
}

func testNoSuchPeer(t *testing.T, start Start) {
	const n, me = 3, 1
	for _, peer := range []int{me, -1, n, n + 1000} {
		for name, step := range map[string]transport.Step{
			"send":      {Signature: sig, Sends: []transport.Send{{To: []int{peer}}}},
			"multicast": {Signature: sig, Sends: []transport.Send{{To: []int{0, peer}}}},
			"receive":   {Signature: sig, Recvs: []transport.Recv{{From: peer}}},
			"both":      {Signature: sig, Sends: []transport.Send{{To: []int{0}}}, Recvs: []transport.Recv{{From: 2}, {From: peer}}},
		} {
			j := open(t, start, n)
			err := j.ends[me].Exchange(j.ctx, step)
			var rank *transport.RankError
			if want := (transport.RankError{Peer: peer, Rank: me, Size: n}); !errors.As(err, &rank) || *rank != want {
				t.Errorf("%s: got %v, want %v", name, err, &want)
			}
		}
	}
}

// checkPeer tests that err is a PeerError that names the peer and wraps one of the
// errors.
func checkPeer(t *testing.T, err error, peer int, want ...error) {
	t.Helper()
	var e *transport.PeerError
	if errors.As(err, &e) && e.Peer == peer {
		for _, w := range want {
			if errors.Is(err, w) {
				return
			}
		}
	}
	t.Errorf("got %v, want %v", err, &transport.PeerError{Peer: peer, Err: fmt.Errorf("one of %q", want)})
}
