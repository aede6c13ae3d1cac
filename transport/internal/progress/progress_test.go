package progress

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/chorale-go/chorale/transport"
)

func isError(err, want error) bool {
	return want == nil && err == nil || want != nil && errors.Is(err, want)
}

func TestTheOwnerHandsProgressToAnotherThatWaits(t *testing.T) {
	run(t, func(t *testing.T, f *fake) {
		var calls [3]call
		for i := range calls {
			calls[i] = do(func() error { return f.exchange(t.Context(), step(uint32(i))) })
		}
		if len(f.owners) != 1 || f.owners[0].Context != 0 {
			t.Fatalf("%d operations own progress", len(f.owners))
		}
		if f.interrupts < 2 {
			t.Error("the owner does not learn of those that have begun to wait")
		}
		f.arrive(2) // not the owner's
		calls[2].check(t, "the operation in context 2", nil)
		if len(f.owners) != 1 {
			t.Error("progress changes its owner although the owner waits")
		}
		f.arrive(0)
		calls[0].check(t, "the owner", nil)
		calls[1].waits(t, "the operation in context 1")
		if len(f.owners) != 2 || f.owners[1].Context != 1 {
			t.Fatalf("nobody owns progress: there were %d owners", len(f.owners))
		}
		f.arrive(1)
		calls[1].check(t, "the operation in context 1", nil)
		if f.owner.taken {
			t.Error("an operation that is over owns progress")
		}
	})
}

func TestAStepThatIsPolledKeepsNoOtherFromOwningProgress(t *testing.T) {
	run(t, func(t *testing.T, f *fake) {
		polled := f.start(t.Context(), step(1))
		owner := do(func() error { return f.exchange(t.Context(), step(2)) })
		other := do(func() error { return f.exchange(t.Context(), step(3)) })
		f.arrive(2)
		owner.check(t, "the owner", nil)
		other.waits(t, "the other operation")
		if len(f.owners) != 2 || f.owners[1].Context != 3 {
			t.Errorf("nobody owns progress: there were %d owners", len(f.owners))
		}
		f.arrive(3)
		other.check(t, "the other operation", nil)
		f.polled = func(int) {
			r := f.queue.Posted(1)
			f.queue.Unpost(r)
			f.queue.Complete(r)
		}
		if _, over := polled.Poll(); !over {
			t.Error("a poll does not take what has arrived")
		}
		do(polled.Wait).check(t, "the step that is polled", nil)
	})
}

func TestACombineThatPanicsInAPollFailsTheEndpoint(t *testing.T) {
	run(t, func(t *testing.T, f *fake) {
		polled := f.start(t.Context(), step(1))
		f.polled = func(int) { panic("no such sum") }
		func() {
			defer func() {
				if v := recover(); v != "no such sum" {
					t.Errorf("recovered %v", v)
				}
			}()
			polled.Poll()
		}()
		do(polled.Wait).check(t, "the step", transport.ErrPanicked)
	})
}

func TestAnOperationThatIsOverBeforeItWaitsOwnsNothing(t *testing.T) {
	run(t, func(t *testing.T, f *fake) {
		empty := step(1)
		empty.Recvs = nil
		do(func() error { return f.exchange(t.Context(), empty) }).check(t, "a step without messages", nil)
		if len(f.owners) != 0 {
			t.Error("it has made progress")
		}
	})
}

func TestAnExpiredContextRevokesTheCommunicatorOfAStep(t *testing.T) {
	for _, owner := range []bool{true, false} {
		run(t, func(t *testing.T, f *fake) {
			var other call
			if !owner {
				other = do(func() error { return f.exchange(t.Context(), step(in(1, 0))) })
			}
			beside := do(func() error { return f.exchange(t.Context(), step(in(2, 1))) })
			ctx, cancel := context.WithCancel(t.Context())
			c := do(func() error { return f.exchange(ctx, step(in(2, 0))) })
			cancel()
			c.check(t, "the step", context.Canceled)
			beside.check(t, "another step of the communicator", context.Canceled)
			if want := []string{"2: rank 0: the rank gave up: context canceled"}; f.failed() != nil || !slices.Equal(f.revoked, want) {
				t.Errorf("the endpoint has failed with %v, and revoked %q, want %q", f.failed(), f.revoked, want)
			}
			do(func() error { return f.exchange(t.Context(), step(in(2, 3))) }).check(t, "the next step", context.Canceled)
			if !owner {
				other.waits(t, "a step of another communicator")
				f.arrive(in(1, 0))
				other.check(t, "the step of another communicator", nil)
			}
		})
	}
}

func TestAnExpiredContextEndsAReceiveAlone(t *testing.T) {
	for _, owner := range []bool{true, false} {
		run(t, func(t *testing.T, f *fake) {
			var beside call
			if !owner {
				beside = do(func() error { return f.exchange(t.Context(), step(1)) })
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			c := do(func() error {
				_, err := f.Recv(ctx, 1, f.tag(1), "bytes", nil)
				return err
			})
			why := errors.New("changed my mind")
			cancel(why)
			c.check(t, "the receive", why)
			if err := f.failed(); err != nil {
				t.Errorf("the endpoint has failed with %v", err)
			}
			if !owner {
				beside.waits(t, "the step beside it")
				f.arrive(1)
				beside.check(t, "the step beside it", nil)
			}
		})
	}
}

func TestCloseWaitsForOperations(t *testing.T) {
	run(t, func(t *testing.T, f *fake) {
		first := do(func() error { return f.exchange(t.Context(), step(1)) })
		second := do(func() error { return f.exchange(t.Context(), step(2)) })
		flushed := false
		f.with(func() {
			f.Close(func() { flushed = true })
			if len(f.ops) > 0 {
				t.Errorf("%d operations have not left", len(f.ops))
			}
		})
		if !flushed {
			t.Error("nothing was flushed")
		}
		first.check(t, "the first step", transport.ErrClosed)
		second.check(t, "the second step", transport.ErrClosed)
		do(func() error { return f.exchange(t.Context(), step(3)) }).check(t, "a step afterwards", transport.ErrClosed)
		if len(f.terminated) != 1 {
			t.Errorf("the peers are told %d times", len(f.terminated))
		}
	})
}

func TestTheFirstErrorIsTheEndpointsError(t *testing.T) {
	run(t, func(t *testing.T, f *fake) {
		first := errors.New("first")
		f.with(func() { f.Fail(first); f.Fail(errors.New("second")) })
		if err := f.failed(); err != first || len(f.terminated) != 1 {
			t.Errorf("the endpoint has failed with %v, and told its peers %v", err, f.terminated)
		}
	})
}

func TestWatchesDoNotPileUp(t *testing.T) {
	run(t, func(t *testing.T, f *fake) {
		for i := range uint32(5 * watchesMax) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			for range 2 { // the second step uses the watch of the first
				c := do(func() error { return f.exchange(ctx, step(i)) })
				f.arrive(i)
				c.check(t, "the step", nil)
			}
			if len(f.watches) > watchesMax {
				t.Fatalf("after %d contexts there are %d watches", i+1, len(f.watches))
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		var calls []call
		for i := range uint32(2 * watchesMax) {
			calls = append(calls, do(func() error {
				_, err := f.Recv(ctx, 1, f.tag(i), "bytes", nil)
				return err
			}))
		}
		watches := len(f.watches)
		cancel()
		for _, c := range calls {
			c.check(t, "a receive", context.Canceled)
		}
		if len(f.watches) != watches-1 {
			t.Errorf("the watch of a context that has ended stays: there were %d, there are %d", watches, len(f.watches))
		}
	})
}

func TestACombineThatPanicsFailsTheEndpoint(t *testing.T) {
	run(t, func(t *testing.T, f *fake) {
		beside := do(func() error { return f.exchange(t.Context(), step(1)) })
		c := do(func() (err error) {
			defer func() { err = fmt.Errorf("panicked: %v", recover()) }()
			f.Lock()
			defer f.Unlock()
			o := f.Begin(t.Context())
			defer f.Leave(o)
			o.Add(1)
			panic("in a Combine")
		})
		if _, err := c.ended(); err == nil || err.Error() != "panicked: in a Combine" {
			t.Errorf("the step returns %v", err)
		}
		beside.check(t, "the step beside it", transport.ErrPanicked)
		if err := f.failed(); err != transport.ErrPanicked || len(f.terminated) != 1 {
			t.Errorf("the endpoint has failed with %v, and told its peers %v", err, f.terminated)
		}
	})
}

// A call for a tagged message polls for the step in progress, too.
func TestACombineThatPanicsWhileATaggedCallPollsFailsTheEndpoint(t *testing.T) {
	m := transport.Match{Context: 1, Tag: 1}
	for name, poll := range map[string]func(f *fake) error{
		"probe": func(f *fake) error { _, _, err := f.Probe(context.Background(), 1, m, false); return err },
		"recv":  func(f *fake) error { _, err := f.Recv(context.Background(), 1, m, "bytes", nil); return err },
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, f *fake) {
				beside := do(func() error { return f.exchange(t.Context(), step(1)) })
				f.polled = func(int) { panic("in a Combine") }
				c := do(func() (err error) {
					defer func() { err = fmt.Errorf("panicked: %v", recover()) }()
					return poll(f)
				})
				if _, err := c.ended(); err == nil || err.Error() != "panicked: in a Combine" {
					t.Errorf("the call returns %v", err)
				}
				beside.check(t, "the step beside it", transport.ErrPanicked)
				if err := f.failed(); err != transport.ErrPanicked || len(f.terminated) != 1 {
					t.Errorf("the endpoint has failed with %v, and told its peers %v", err, f.terminated)
				}
			})
		})
	}
}

// The operation is over, and its goroutine does something for another one.
func TestACombineThatPanicsAfterTheOperationIsOverFailsTheEndpoint(t *testing.T) {
	run(t, func(t *testing.T, f *fake) {
		beside := do(func() error { return f.exchange(t.Context(), step(1)) })
		do(func() (err error) {
			defer func() { err = fmt.Errorf("panicked: %v", recover()) }()
			f.Lock()
			defer f.Unlock()
			o := f.Begin(t.Context())
			defer f.Leave(o)
			o.Finish(nil)
			panic("in a Combine")
		})
		beside.check(t, "the step beside it", transport.ErrPanicked)
	})
}

func TestAStepIsCheckedBeforeItBegins(t *testing.T) {
	for name, c := range map[string]struct {
		step transport.Step
		want string
	}{
		"no such receiver":             {transport.Step{Sends: []transport.Send{{To: []int{1, 3}}}}, "no rank 3: the job has ranks 0 to 2"},
		"no such sender":               {transport.Step{Recvs: []transport.Recv{{From: -1}}}, "no rank -1: the job has ranks 0 to 2"},
		"itself":                       {transport.Step{Sends: []transport.Send{{To: []int{0}}}}, "rank 0 cannot exchange messages with itself"},
		"a second step of one context": {step(1), transport.ErrTwoSteps.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, f *fake) {
				beside := do(func() error { return f.exchange(t.Context(), step(1)) })
				_, err := do(func() error { return f.exchange(t.Context(), c.step) }).ended()
				if err == nil || err.Error() != c.want {
					t.Errorf("the step returns %v, want %q", err, c.want)
				}
				beside.check(t, "the step beside it", err)
				if f.failed() != err {
					t.Errorf("the endpoint has failed with %v", f.failed())
				}
			})
		})
	}
}

func TestAnOrderedReceiveHasItsPeerLookedAtAgain(t *testing.T) {
	run(t, func(t *testing.T, f *fake) {
		s := step(1)
		s.Recvs = append(s.Recvs, transport.Recv{From: 1, Into: make([]byte, 1), Ordered: true})
		c := do(func() error { return f.exchange(t.Context(), s) })
		f.arrive(1)
		c.waits(t, "the step")
		if fmt.Sprint(f.rechecked) != "[1]" {
			t.Errorf("looked at again are %v", f.rechecked)
		}
		f.arrive(1)
		c.check(t, "the step", nil)
	})
}

func TestTheTerminationNoticeSaysWhatTheRankWouldSay(t *testing.T) {
	call := func(n uint32, text string) transport.Signature {
		return transport.Signature{Context: 4, Sequence: n, Call: text}
	}
	mismatch := &transport.MismatchError{Rank: 0, Peer: 1, Mine: call(5, "sum"), Theirs: call(6, "max")}
	for name, c := range map[string]struct {
		err  error
		last transport.Signature
		one  error // what it means to rank 1,
		two  error // and to rank 2
	}{
		"closed": {transport.ErrClosed, transport.Signature{},
			&transport.PeerError{Peer: 0, Err: transport.ErrLeft}, &transport.PeerError{Peer: 0, Err: transport.ErrLeft}},
		"closed after a call": {transport.ErrClosed, transport.Signature{Sequence: 7, Call: "sum"},
			&transport.PeerError{Peer: 0, Err: transport.ErrLeft, Reason: `its last call was call 7, "sum"`},
			&transport.PeerError{Peer: 0, Err: transport.ErrLeft, Reason: `its last call was call 7, "sum"`}},
		"failed": {errors.New("why"), transport.Signature{Sequence: 7, Call: "sum"},
			&transport.PeerError{Peer: 0, Err: transport.ErrAborted, Reason: "why"},
			&transport.PeerError{Peer: 0, Err: transport.ErrAborted, Reason: "why"}},
		"a mismatch with rank 1": {fmt.Errorf("in a step: %w", mismatch), transport.Signature{},
			&transport.MismatchError{Rank: 1, Peer: 0, Mine: mismatch.Theirs, Theirs: mismatch.Mine},
			&transport.PeerError{Peer: 0, Err: transport.ErrAborted, Reason: "in a step: " + mismatch.Error()}},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, f *fake) {
				f.with(func() {
					f.end.last = c.last
					f.Fail(c.err)
					n := f.Notice()
					for rank, want := range map[int]error{1: c.one, 2: c.two} {
						if got := n.PeerError(rank, 0); fmt.Sprintf("%T %v", got, got) != fmt.Sprintf("%T %v", want, want) {
							t.Errorf("rank %d gets %T %v, want %v", rank, got, got, want)
						}
					}
				})
			})
		})
	}
}

// The peer has failed because of a mismatch with this rank; only if this rank is still
// in that call has it failed as well.
func TestAPeersMismatchFailsTheStepThatItIsAbout(t *testing.T) {
	for sequence, fails := range map[uint32]bool{1: true, 2: false} {
		run(t, func(t *testing.T, f *fake) {
			s := step(1)
			c := do(func() error { return f.exchange(t.Context(), s) })
			mine := s.Signature
			mine.Sequence = sequence
			m := &transport.MismatchError{Rank: 0, Peer: 1, Mine: mine, Theirs: transport.Signature{Context: 1, Sequence: 1, Call: "max"}}
			f.with(func() { f.HearMismatch(m) })
			if over, err := c.ended(); over != fails || fails && err != m {
				t.Errorf("call %d: the step has returned: %v, %v", sequence, over, err)
			}
			f.with(func() { f.HearMismatch(&transport.PeerError{Peer: 1, Err: transport.ErrLeft}) })
			if (f.failed() != nil) != fails {
				t.Errorf("call %d: the endpoint has failed with %v", sequence, f.failed())
			}
		})
	}
}

func TestAnEndpointNamesItsLastCallInTheContextOfAllRanks(t *testing.T) {
	run(t, func(t *testing.T, f *fake) {
		for _, context := range []uint32{0, 1} {
			c := do(func() error { return f.exchange(t.Context(), step(context)) })
			f.arrive(context)
			c.check(t, "the step", nil)
		}
		theirs := transport.Signature{Sequence: 2, Call: "max"}
		want := &transport.UnreceivedError{Rank: 0, Peer: 1, Mine: step(0).Signature, Theirs: theirs}
		if err := f.Unreceived(1, theirs); err.Error() != want.Error() {
			t.Errorf("got %v, want %v", err, want)
		}
	})
}

func TestNoMessageComesFromAnyWhenOneIsLostOrAllHaveLeft(t *testing.T) {
	left := func(peer int) error { return &transport.PeerError{Peer: peer, Err: transport.ErrLeft} }
	lost := &transport.PeerError{Peer: 2, Err: transport.ErrLost}
	for name, c := range map[string]struct {
		gone map[int]error
		want error
	}{
		"all are there":                 {nil, nil},
		"one has left":                  {map[int]error{1: left(1)}, nil},
		"all have left":                 {map[int]error{1: left(1), 2: left(2)}, transport.ErrLeft},
		"one is lost":                   {map[int]error{2: lost}, transport.ErrLost},
		"one has left, and one is lost": {map[int]error{1: left(1), 2: lost}, transport.ErrLost},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, f *fake) {
				if err := f.AllGone(0, func(peer int) error { return c.gone[peer] }); !isError(err, c.want) {
					t.Errorf("got %v, want %v", err, c.want)
				}
			})
		})
	}
}

func TestAFlusherWritesWhileNobodyWaits(t *testing.T) {
	run(t, func(t *testing.T, f *fake) {
		f.with(func() { f.StartFlusher(); f.StartFlusher() })
		synctest.Wait()
		f.with(func() {
			if len(f.owners) != 1 || len(f.ops) != 1 || !f.Flushing() {
				t.Errorf("%d flushers make progress, of %d", len(f.owners), len(f.ops))
			}
			f.Flushed()
		})
		f.WaitBackground()
		if f.Flushing() {
			t.Error("a flusher goes on")
		}
	})
}

func TestMessagesEndOnceIfTheirPeerIsFoundGoneAsTheyAreSent(t *testing.T) {
	run(t, func(t *testing.T, f *fake) {
		f.unlinked = true
		one, two := f.send(t.Context(), nil, nil), f.send(t.Context(), nil, nil)
		f.unlinked = false
		f.polled = func(int) {
			f.polled, f.peerErr = nil, transport.ErrLost
			f.PeerGone(1, f.peerErr)
		}
		f.with(func() { f.LinkUp(1) })
		one.check(t, "the first send", transport.ErrLost)
		two.check(t, "the second send", transport.ErrLost)
	})
}

func TestMessagesEndOnceIfTheirPeerIsFoundGoneAsOneIsWithdrawn(t *testing.T) {
	run(t, func(t *testing.T, f *fake) {
		var (
			p TaggedPeer
			w wire
		)
		w.breaks = func() { f.PeerGone(1, transport.ErrLost) }
		ctx, cancel := context.WithCancel(t.Context())
		calls := []call{f.send(t.Context(), &p, &w), f.send(ctx, &p, &w), f.send(ctx, &p, &w)}
		cancel()
		synctest.Wait()
		calls[0].check(t, "the send that is not canceled", transport.ErrLost)
		for _, c := range calls[1:] {
			if over, err := c.ended(); !over || !errors.Is(err, context.Canceled) && !errors.Is(err, transport.ErrLost) {
				t.Errorf("a canceled send returns %v (over: %v)", err, over)
			}
		}
	})
}

func TestMessagesWaitForTheirLinkAndAreSentInOrder(t *testing.T) {
	run(t, func(t *testing.T, f *fake) {
		var (
			p TaggedPeer
			w wire
		)
		f.unlinked = true
		one, two := f.send(t.Context(), &p, &w), f.send(t.Context(), &p, &w)
		other := do(func() error { return f.Send(t.Context(), 2, f.tag(1), "bytes", nil) })
		if len(w.frames) > 0 {
			t.Errorf("written before the link is up are %v", w.frames)
		}
		f.unlinked = false
		f.with(func() { f.LinkUp(1) })
		if want := "[RTS 1 RTS 2]"; fmt.Sprint(w.frames) != want {
			t.Errorf("written are %v, want %s", w.frames, want)
		}
		f.with(func() { p.CTS(2).Complete(); p.CTS(1).Complete() })
		one.check(t, "the first send", nil)
		two.check(t, "the second send", nil)
		other.waits(t, "the send to rank 2")
		f.with(func() { f.PeerGone(2, transport.ErrLost) })
		other.check(t, "the send to rank 2", transport.ErrLost)
	})
}
