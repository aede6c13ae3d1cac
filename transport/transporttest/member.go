package transporttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
)

var memberClaims = []claim{
	{"TheSteadyStateAllocatesNothing", testNoAllocations},
	{"ARankThatGivesUpInTheMiddleOfAMessageSaysWhy", testReason},
	{"MessagesPutAsideKeepTheirOrder", testAsideOrder},
	{"AMessagePutAsideIsComparedWithItsReceive", testAsideCompared},
	{"ALeftOverOfAnEarlierCallIsAMismatch", testLeftOver},
	{"CallNumbersMayWrapAround", testWrapAround},
	{"ARankThatLeavesWithAMessageUnreadIsTold", testUnread},
	{"AContextThatIsReleasedLeavesNothing", testRelease},
	{"TwoStepsOfOneContextAtATimeAreAnError", testTwoSteps},
	{"ACombineThatPanicsFailsTheEndpoint", testPanic},
	{"ManyContextsThatEndBetweenExchangesLeaveNoTrace", testContextsLeft},
	{"AMessageThatNobodyExpectsHoldsUpNoLetter", testLetterOvertakes},
	{"WhatIsPostedArrivesAfterItsSenderHasLeft", testPostedBeforeLeaving},
	{"ALetterWhosePostIsCancelledIsWithdrawn", testCancelledPost},
	{"ARankThatIsLostFailsWhoWaitsForIt", testLost},
	{"WhoWaitsForALetterLearnsThatARankIsLost", testLostLetter},
}

// RunMember tests that the endpoints that start makes do what the members of a
// job are asked for beyond [Run] and [RunMail].
func RunMember(t *testing.T, start Start) { runAll(t, start, memberClaims) }

// checkReason tests that err says of a peer what became of it, and holds a text.
func checkReason(t *testing.T, err error, peer int, what error, text string) {
	t.Helper()
	checkPeer(t, err, peer, what)
	if err != nil && !strings.Contains(err.Error(), text) {
		t.Errorf("got %v, which does not say %q", err, text)
	}
}

func testNoAllocations(t *testing.T, start Start) {
	const rounds = 200
	for _, size := range []int{8, 100_000} {
		exchange := func(ctx context.Context, e transport.Endpoint) func() {
			peer := 1 - e.Rank()
			step := transport.Step{
				Signature: sig,
				Sends:     []transport.Send{{To: []int{peer}, Data: make([]byte, size)}},
				Recvs: []transport.Recv{{
					From: peer, Into: make([]byte, size), Held: make([]byte, size), Elem: 8,
					Combine: func(into, held, incoming []byte) { copy(into, incoming) },
				}},
			}
			return func() {
				if err := e.Exchange(ctx, step); err != nil {
					t.Error(err)
				}
			}
		}
		open(t, start, 2).mustAll(func(ctx context.Context, e transport.Endpoint) error {
			if n := testing.AllocsPerRun(rounds, exchange(ctx, e)); n >= 1 {
				return fmt.Errorf("an exchange of %d bytes makes %v allocations", size, n)
			}
			return nil
		}, func(ctx context.Context, e transport.Endpoint) error {
			other := exchange(ctx, e)
			for range rounds + 1 {
				other()
			}
			return nil
		})
	}
}

// A message cut off in the middle of a frame would leave no room for the reason.
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
		if err := send(ctx, e, sig, 0, make([]byte, 1)); err != nil { // they are connected then
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
		if err := <-errs; err == nil || err.Error() != "two steps of one context at a time" {
			t.Errorf("got %v", err)
		}
	}
}

func testPanic(t *testing.T, start Start) {
	j := open(t, start, 2)
	j.all(func(ctx context.Context, e transport.Endpoint) error {
		return send(ctx, e, sig, 1, make([]byte, 1)) // it may not know yet
	}, func(ctx context.Context, e transport.Endpoint) error {
		defer func() {
			if recover() == nil {
				t.Error("the panic is gone")
			}
		}()
		into := make([]byte, 1)
		return e.Exchange(ctx, transport.Step{Signature: sig, Recvs: []transport.Recv{
			{From: 0, Into: into, Held: into, Elem: 1, Combine: func(_, _, _ []byte) { panic("no such sum") }},
		}})
	})
	if err := swap(j.ctx, j.ends[1], sig, 0); err == nil || err.Error() != "a Combine panicked" {
		t.Errorf("got %v", err)
	}
	checkReason(t, swap(j.ctx, j.ends[0], sig, 1), 1, transport.ErrAborted, "panicked")
}

// counted is a context that counts those who are to be told of its end.
type counted struct {
	context.Context
	watchers *atomic.Int32
}

// Value hides the context within, which would be asked itself else.
func (c counted) Value(any) any { return nil }

func (c counted) AfterFunc(f func()) func() bool {
	c.watchers.Add(1)
	stop := context.AfterFunc(c.Context, f)
	return func() bool {
		stopped := stop()
		if stopped {
			c.watchers.Add(-1)
		}
		return stopped
	}
}

func testContextsLeft(t *testing.T, start Start) {
	open(t, start, 2).each(func(ctx context.Context, e transport.Endpoint) error {
		var watchers atomic.Int32
		for range 100 {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel() // not before the next exchange
			if e.Rank() == 1 {
				time.Sleep(moment / 10) // so that the other comes to watch its context
			}
			if err := swap(counted{ctx, &watchers}, e, sig, 1-e.Rank()); err != nil {
				return err
			}
		}
		if n := watchers.Load(); n > 20 {
			return fmt.Errorf("%d contexts are watched", n)
		}
		return nil
	})
}

func testLetterOvertakes(t *testing.T, start Start) {
	for _, size := range []int{0, 8, 20 << 20} {
		for _, from := range []int{0, transport.Any} {
			t.Run(fmt.Sprintf("bytes=%d/from=%d", size, from), func(t *testing.T) {
				message := letter(3, size)
				lies := make(chan struct{})
				j := open(t, start, 2)
				j.mustAll(func(ctx context.Context, e transport.Endpoint) error {
					sent := make(chan error, 1)
					go func() { sent <- send(ctx, e, sig, 1, message) }()
					<-lies
					return errors.Join(post(ctx, e, 1, stamp, letter(1, 100)), post(ctx, e, 1, stamp, letter(2, 1<<20)), <-sent)
				}, func(ctx context.Context, e transport.Endpoint) error {
					j.until(func() bool { return e.CheckUnreceived() != nil })
					close(lies)
					err := errors.Join(take(ctx, e, from, stamp, letter(1, 100)), take(ctx, e, from, stamp, letter(2, 1<<20)))
					into := make([]byte, size)
					err = errors.Join(err, recv(ctx, e, sig, 0, into))
					if err == nil && !bytes.Equal(into, message) {
						err = errors.New("the message is not what was sent")
					}
					return err
				})
			})
		}
	}
}

func testCancelledPost(t *testing.T, start Start) {
	j := open(t, start, 2)
	ctx, cancel := context.WithCancel(j.ctx)
	posted := make(chan error, 1)
	go func() { posted <- post(ctx, j.ends[0], 1, stamp, letter(1, 1<<20)) }()
	peek := func(wait bool) int {
		env, _, err := j.ends[1].Probe(j.ctx, 0, stamp, wait)
		if err != nil {
			t.Fatal(err)
		}
		return env.Size
	}
	if size := peek(true); size != 1<<20 {
		t.Fatalf("a letter of %d bytes came, want 1 MiB", size)
	}
	cancel()
	if err := <-posted; !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want %v", err, context.Canceled)
	}
	if err := post(j.ctx, j.ends[0], 1, stamp, letter(2, 100)); err != nil {
		t.Fatal(err)
	}
	j.until(func() bool {
		j.ends[1].CheckUnreceived() // it looks what has come
		return peek(false) == 100
	})
	if err := take(j.ctx, j.ends[1], 0, stamp, letter(2, 100)); err != nil {
		t.Fatal(err)
	}
}

// tell has a rank told that another is lost. It skips the test where nobody can
// be.
func tell(t *testing.T, e transport.Endpoint, rank int, reason string) {
	l, ok := e.(interface{ Lost(rank int, reason string) })
	if !ok {
		t.Skip("no rank of such a job is lost alone")
	}
	l.Lost(rank, reason)
}

func testLost(t *testing.T, start Start) {
	j := open(t, start, 3)
	waiting := make(chan error, 1)
	go func() { waiting <- recv(j.ctx, j.ends[0], sig, 1, nil) }()
	tell(t, j.ends[0], 2, "not of interest")
	tell(t, j.ends[0], 1, "killed by signal 9")
	checkReason(t, <-waiting, 1, transport.ErrLost, "killed by signal 9")

	tell(t, j.ends[2], 1, "killed by signal 9")
	checkReason(t, send(j.ctx, j.ends[2], sig, 1, nil), 1, transport.ErrLost, "killed by signal 9")
	for _, rank := range []int{-1, 2, 3} {
		tell(t, j.ends[2], rank, "no such rank") // harms nobody
	}
}

func testLostLetter(t *testing.T, start Start) {
	for name, wait := range map[string]part{
		"from":     func(ctx context.Context, e transport.Endpoint) error { return take(ctx, e, 2, stamp, nil) },
		"from any": func(ctx context.Context, e transport.Endpoint) error { return take(ctx, e, transport.Any, stamp, nil) },
		"to": func(ctx context.Context, e transport.Endpoint) error {
			return post(ctx, e, 2, stamp, make([]byte, 1<<20))
		},
	} {
		t.Run(name, func(t *testing.T) {
			j := open(t, start, 3)
			ended := make(chan error, 1)
			go func() { ended <- wait(j.ctx, j.ends[0]) }()
			time.Sleep(moment)
			tell(t, j.ends[0], 2, "it was killed")
			checkReason(t, <-ended, 2, transport.ErrLost, "it was killed")
			// Only rank 2 is lost.
			j.mustAll(func(ctx context.Context, e transport.Endpoint) error {
				return take(ctx, e, 1, stamp, letter(1, 2))
			}, func(ctx context.Context, e transport.Endpoint) error {
				return post(ctx, e, 0, stamp, letter(1, 2))
			})
		})
	}
}
