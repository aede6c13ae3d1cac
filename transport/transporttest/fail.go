package transporttest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/cluster"
)

// failClaims: an Exchange that fails, by its context or by a mistake.
var failClaims = []claim{
	{"ACanceledExchangeRevokesItsCommunicatorForItsPeers", testCancel},
	{"AnEndedContextFailsAnExchange", testEndedContext},
	{"AContextThatEndsBetweenExchangesHasNoEffect", testContextBetween},
	{"ContextsOfEarlierExchangesAreNotWatched", testWatchers},
	{"AMistakeEndsTheWholeEndpoint", testMistakeIsFinal},
	{"AbortEndsTheEndpointAndPeersGetItsReason", testAbort},
	{"PeersGetTheReasonOfAFailureInTheMiddleOfAMessage", testReason},
	{"TwoStepsOfOneContextAtATimeAreAnError", testTwoSteps},
	{"ACombineThatPanicsFailsTheEndpoint", testPanic},
	{"ACombineThatPanicsFailsTheCallsBesideIt", testPanicBeside},
}

// testCancel cancels an Exchange of rank 0. Rank 1 calls an Exchange with it
// afterwards, rank 2 before.
func testCancel(t *testing.T, start Start) {
	for _, test := range []struct {
		name      string
		size      int // of rank 0's messages, in bytes
		operation func(ctx context.Context, e transport.Endpoint, data []byte) error
	}{
		{"receive", 1, func(ctx context.Context, e transport.Endpoint, data []byte) error {
			return recv(ctx, e, sig, 1, data)
		}},
		{"swap", 8, func(ctx context.Context, e transport.Endpoint, data []byte) error {
			return swap(ctx, e, sig, 1)
		}},
		{"large send", 32 << 20, func(ctx context.Context, e transport.Endpoint, data []byte) error {
			return send(ctx, e, sig, 1, data)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			j := open(t, start, 3)
			from2 := cluster.Begin(j.ctx, func(ctx context.Context) error {
				return recv(ctx, j.ends[2], sig, 0, make([]byte, 1))
			})
			ctx, cancel := context.WithCancel(j.ctx)
			defer cancel()
			data := make([]byte, test.size)
			canceled := cluster.Begin(ctx, func(ctx context.Context) error { return test.operation(ctx, j.ends[0], data) })
			cancel()
			if err := <-canceled; !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want %v", err, context.Canceled)
			}
			var err error
			for into := make([]byte, test.size); err == nil; { // messages on the way may still arrive
				err = recv(j.ctx, j.ends[1], sig, 0, into)
			}
			checkPeer(t, err, 0, transport.ErrAborted)
			checkPeer(t, <-from2, 0, transport.ErrAborted)
		})
	}
	t.Run("deadline", func(t *testing.T) {
		j := open(t, start, 2)
		ctx, cancel := context.WithTimeout(j.ctx, 5*time.Millisecond)
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

// testWatchers has rank 0 wait in each of many Exchanges, each under a context of
// its own, which ends only after the last. An endpoint may keep watching a few.
func testWatchers(t *testing.T, start Start) {
	const rounds, most = 100, 20
	j := open(t, start, 2)
	var contexts [2][rounds]*cluster.Observed
	for rank := range contexts {
		for round := range rounds {
			ctx, cancel := context.WithCancel(j.ctx)
			defer cancel()
			contexts[rank][round] = cluster.Observe(ctx)
		}
	}
	j.each(func(_ context.Context, e transport.Endpoint) error {
		for round, ctx := range contexts[e.Rank()] {
			if e.Rank() == 1 {
				contexts[0][round].UntilWaiting()
			}
			if err := swap(ctx, e, sig, 1-e.Rank()); err != nil {
				return err
			}
		}
		watchers := 0
		for _, ctx := range contexts[e.Rank()] {
			watchers += ctx.Watchers()
		}
		if watchers > most {
			return fmt.Errorf("%d contexts are watched", watchers)
		}
		return nil
	})
}

// testMistakeIsFinal has an endpoint wait in one communicator, and make a mistake in
// another.
func testMistakeIsFinal(t *testing.T, start Start) {
	another := sig
	another.Call = "another"
	for name, mistake := range map[string]func(j *job, e transport.Endpoint) error{
		"wrong rank": func(j *job, e transport.Endpoint) error { return send(j.ctx, e, sig, 3, nil) },
		"wrong size": func(j *job, e transport.Endpoint) error {
			cluster.Begin(j.ctx, func(ctx context.Context) error { return send(ctx, j.ends[1], sig, 0, make([]byte, 1)) })
			return recv(j.ctx, e, sig, 1, make([]byte, 2))
		},
		"wrong call": func(j *job, e transport.Endpoint) error {
			cluster.Begin(j.ctx, func(ctx context.Context) error { return send(ctx, j.ends[1], another, 0, make([]byte, 1)) })
			return recv(j.ctx, e, sig, 1, make([]byte, 1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			j := open(t, start, 3)
			e := j.ends[0]
			for _, rank := range []int{0, 2} { // rank 1 may give up, too
				j.ends[rank].SetMembers(1, []int{0, 2})
			}
			received := cluster.Begin(j.ctx, func(ctx context.Context) error {
				return recv(ctx, e, inCommunicator(1), 2, make([]byte, 1))
			})
			first := mistake(j, e)
			if first == nil {
				t.Fatal("the mistake is no error")
			}
			if err := <-received; err == nil || err.Error() != first.Error() {
				t.Errorf("the other communicator got %v, want %v", err, first)
			}
			for range 2 {
				if err := swap(j.ctx, e, sig, 2); err == nil || err.Error() != first.Error() {
					t.Errorf("a later exchange got %v, want %v again", err, first)
				}
			}
			if err := e.Revoked(2); err == nil || err.Error() != first.Error() {
				t.Errorf("a communicator that was never used: got %v, want %v", err, first)
			}
			if err := recv(j.ctx, j.ends[2], sig, 0, nil); !errors.Is(err, transport.ErrAborted) {
				t.Errorf("a peer got %v, want %v", err, transport.ErrAborted)
			}
		})
	}
}

// testAbort aborts rank 0, which waits. Rank 1 waits for it, and rank 2 comes later.
func testAbort(t *testing.T, start Start) {
	j := open(t, start, 3)
	enough := errors.New("enough")
	swapped := cluster.Begin(j.ctx, func(ctx context.Context) error { return swap(ctx, j.ends[0], sig, 2) })
	received := cluster.Begin(j.ctx, func(ctx context.Context) error { return recv(ctx, j.ends[1], sig, 0, nil) })
	j.ends[0].Abort(enough)
	j.ends[0].Abort(errors.New("more than enough"))
	for _, err := range []error{<-swapped, swap(j.ctx, j.ends[0], sig, 1), j.ends[0].Revoked(1)} {
		if err == nil || err.Error() != enough.Error() {
			t.Errorf("got %v, want %v", err, enough)
		}
	}
	checkReason(t, <-received, 0, transport.ErrAborted, "enough")
	var err error
	for err == nil { // what rank 0 sent before may still arrive
		err = swap(j.ctx, j.ends[2], sig, 0)
	}
	checkReason(t, err, 0, transport.ErrAborted, "enough")
}

// testReason cancels rank 0 while its message is on the way.
func testReason(t *testing.T, start Start) {
	j := open(t, start, 2)
	ctx, cancel := context.WithCancelCause(j.ctx)
	large, over := make([]byte, 64<<20), make(chan struct{})
	errs := j.all(func(_ context.Context, e transport.Endpoint) error {
		defer close(over)
		return e.Exchange(ctx, transport.Step{
			Signature: sig,
			Sends:     []transport.Send{{To: []int{1}, Data: large}},
			Recvs:     []transport.Recv{{From: 1, Into: make([]byte, 1)}},
		})
	}, func(ctx context.Context, e transport.Endpoint) error {
		if err := send(ctx, e, sig, 0, make([]byte, 1)); err != nil { // connects the two
			return err
		}
		cancel(errors.New("enough"))
		<-over
		return recv(ctx, e, sig, 0, make([]byte, len(large)))
	})
	if !errors.Is(errs[0], context.Canceled) {
		t.Errorf("got %v, want %v", errs[0], context.Canceled)
	}
	checkReason(t, errs[1], 0, transport.ErrAborted, "enough")
}

func testTwoSteps(t *testing.T, start Start) {
	j := open(t, start, 2)
	errs := make(chan error, 2)
	for range cap(errs) {
		go func() { errs <- swap(j.ctx, j.ends[0], sig, 1) }()
	}
	for range cap(errs) {
		if err := <-errs; !errors.Is(err, transport.ErrTwoSteps) {
			t.Errorf("got %v, want %v", err, transport.ErrTwoSteps)
		}
	}
}

func testPanic(t *testing.T, start Start) {
	j := open(t, start, 2)
	j.all(func(ctx context.Context, e transport.Endpoint) error {
		return send(ctx, e, sig, 1, make([]byte, 1)) // completes or fails
	}, func(ctx context.Context, e transport.Endpoint) error {
		defer func() {
			if recover() == nil {
				t.Error("Exchange returned instead of panicking")
			}
		}()
		into := make([]byte, 1)
		return e.Exchange(ctx, transport.Step{Signature: sig, Recvs: []transport.Recv{
			{From: 0, Into: into, Held: into, Elem: 1, Combine: func(_, _, _ []byte) { panic("no such sum") }},
		}})
	})
	if err := swap(j.ctx, j.ends[1], sig, 0); !errors.Is(err, transport.ErrPanicked) {
		t.Errorf("got %v, want %v", err, transport.ErrPanicked)
	}
	checkReason(t, swap(j.ctx, j.ends[0], sig, 1), 1, transport.ErrAborted, transport.ErrPanicked.Error())
}

// testPanicBeside has rank 1 wait for a tagged message and in an Exchange of another
// context while a Combine panics: any of these calls may be the one that polls, and
// then panics.
func testPanicBeside(t *testing.T, start Start) {
	j := open(t, start, 2)
	e, other := j.ends[1], sig
	other.Context++
	into := make([]byte, 1)
	panics := make(chan any, 3)
	var ended []<-chan error
	for _, call := range []rankFunc{
		func(ctx context.Context, e transport.Endpoint) error { return recvTagged(ctx, e, 0, match, nil) },
		func(ctx context.Context, e transport.Endpoint) error { return recv(ctx, e, other, 0, into) },
		func(ctx context.Context, e transport.Endpoint) error {
			return e.Exchange(ctx, transport.Step{Signature: sig, Recvs: []transport.Recv{
				{From: 0, Into: into, Held: into, Elem: 1, Combine: func(_, _, _ []byte) { panic("no such sum") }},
			}})
		},
	} {
		ended = append(ended, cluster.Begin(j.ctx, func(ctx context.Context) (err error) {
			defer func() {
				if v := recover(); v != nil {
					panics <- v
					err = transport.ErrPanicked
				}
			}()
			return call(ctx, e)
		}))
	}
	if err := send(j.ctx, j.ends[0], sig, 1, make([]byte, 1)); err != nil { // it completes or fails
		checkPeer(t, err, 1, transport.ErrAborted)
	}
	for i, err := range ended {
		if err := <-err; !errors.Is(err, transport.ErrPanicked) {
			t.Errorf("call %d: got %v, want %v", i, err, transport.ErrPanicked)
		}
	}
	if n := len(panics); n != 1 {
		t.Errorf("%d calls panicked, want 1", n)
	}
	if err := sendTagged(j.ctx, e, 0, match, nil); !errors.Is(err, transport.ErrPanicked) {
		t.Errorf("afterwards: got %v, want %v", err, transport.ErrPanicked)
	}
	checkReason(t, swap(j.ctx, j.ends[0], sig, 1), 1, transport.ErrAborted, transport.ErrPanicked.Error())
}
