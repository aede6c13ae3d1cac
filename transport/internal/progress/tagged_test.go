package progress

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
)

// recv begins to receive a tagged message of rank 1 into n bytes.
func (f *fake) recv(ctx context.Context, n int) call {
	return do(func() error {
		_, err := f.Recv(ctx, 1, f.tag(1), "bytes", make([]byte, n))
		return err
	})
}

// A wire notes which frames of a rendezvous are written.
type wire struct {
	frames []string
	gone   bool
	breaks func() // when a withdrawal is written
}

func (w *wire) SendRTS(s *PendingSend, _ transport.Match, _ string) { w.note("RTS", s) }
func (w *wire) Withdrawn(s *PendingSend)                            { w.note("no fragments", s) }
func (w *wire) Gone() bool                                          { return w.gone }

func (w *wire) SendWithdraw(s *PendingSend) {
	w.note("withdraw", s)
	if w.breaks != nil {
		w.gone = true
		w.breaks()
	}
}

func (w *wire) note(frame string, s *PendingSend) {
	w.frames = append(w.frames, fmt.Sprintf("%s %d", frame, s.Number))
}

// send begins to send a tagged message to rank 1 by rendezvous.
func (f *fake) send(ctx context.Context, p *TaggedPeer, w *wire) call {
	f.peer, f.wire = p, w
	return do(func() error { return f.Send(ctx, 1, f.tag(1), "bytes", []byte("contents")) })
}

func TestAnEagerMessageIsReceivedWhenItArrives(t *testing.T) {
	run(t, func(t *testing.T, f *fake) {
		c := f.recv(t.Context(), 10)
		if f.expected[1] != 1 {
			t.Errorf("%d operations wait for rank 1", f.expected[1])
		}
		f.eager(2, 1) // of another context
		c.waits(t, "the receive")
		f.eager(1, 7)
		c.check(t, "the receive", nil)
		if f.returned != 7 {
			t.Errorf("credits are returned for %d bytes, want 7", f.returned)
		}
	})
}

func TestAMessageThatArrivedUnseenIsReceivedWithoutWaiting(t *testing.T) {
	run(t, func(t *testing.T, f *fake) {
		f.polled = func(from int) {
			f.polled = nil
			m := f.Tagged().New(0)
			m.MessageInfo, m.Context = transport.MessageInfo{From: from, Tag: 1, Type: "bytes"}, 1
			f.Arrived(m)
		}
		f.recv(t.Context(), 0).check(t, "the receive", nil)
		if len(f.owners) > 0 {
			t.Error("it has waited")
		}
	})
}

func TestAMessageThatDoesNotFitStaysQueued(t *testing.T) {
	run(t, func(t *testing.T, f *fake) {
		f.eager(1, 7)
		for _, c := range []struct {
			kind string
			n    int
			want string
		}{
			{"bytes", 6, "message from rank 1 has 7 bytes, want 6"},
			{"runes", 7, "message from rank 1 is of type bytes, want runes"},
		} {
			info, err := f.Recv(t.Context(), 1, f.tag(1), c.kind, make([]byte, c.n))
			if err == nil || err.Error() != c.want || info.Size != 7 || info.Type != "bytes" {
				t.Errorf("got %+v, %v, want %q", info, err, c.want)
			}
		}
		if info, found, err := f.Probe(t.Context(), transport.Any, f.tag(1), false); err != nil || !found || info.Size != 7 {
			t.Errorf("the probe finds %+v, %v, %v", info, found, err)
		}
		f.recv(t.Context(), 7).check(t, "the receive", nil)
		if _, found, err := f.Probe(t.Context(), transport.Any, f.tag(1), false); err != nil || found {
			t.Errorf("the message is still there: %v, %v", found, err)
		}
	})
}

func TestARendezvousMessageIsPulled(t *testing.T) {
	run(t, func(t *testing.T, f *fake) {
		f.rts(3, 5)
		into := make([]byte, 10)
		c := do(func() error {
			_, err := f.Recv(t.Context(), 1, f.tag(1), "bytes", into)
			return err
		})
		if fmt.Sprint(f.cts) != "[3]" {
			t.Fatalf("asked for is %v", f.cts)
		}
		f.with(func() {
			m := f.Tagged().Requested(1, 3)
			m.Got += copy(m.Data, "hello")
			m.Done(nil)
		})
		if c.check(t, "the receive", nil); string(into[:5]) != "hello" || f.Tagged().Requested(1, 3) != nil {
			t.Errorf("received %q", into)
		}
	})
}

func TestAMessageThatIsWithdrawnWhileItIsPulledIsLookedForAgain(t *testing.T) {
	run(t, func(t *testing.T, f *fake) {
		f.rts(3, 5)
		c := f.recv(t.Context(), 10)
		f.with(func() { f.Tagged().Withdraw(1, 3) })
		c.waits(t, "the receive")
		f.eager(1, 7)
		c.check(t, "the receive", nil)
	})
}

func TestAMessageOnItsWayTakesItsCommunicatorAlongWhenTheContextEnds(t *testing.T) {
	run(t, func(t *testing.T, f *fake) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		f.rts(3, 5)
		c := f.recv(ctx, 10)
		time.Sleep(2 * time.Second)
		c.check(t, "the receive", context.DeadlineExceeded)
		if f.failed() != nil || f.Revoked(0) != context.DeadlineExceeded {
			t.Errorf("the endpoint has failed with %v, and the communicator with %v", f.failed(), f.Revoked(0))
		}
	})
	run(t, func(t *testing.T, f *fake) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var p TaggedPeer
		var w wire
		c := f.send(ctx, &p, &w)
		f.with(func() {
			if s := p.CTS(1); s == nil || string(s.Data) != "contents" {
				t.Errorf("asked for is %+v", s)
			}
		})
		time.Sleep(2 * time.Second)
		c.check(t, "the send", context.DeadlineExceeded)
		if f.failed() != nil || f.Revoked(0) != context.DeadlineExceeded || fmt.Sprint(w.frames) != "[RTS 1 no fragments 1]" {
			t.Errorf("the endpoint has failed with %v, the communicator with %v, and written is %v", f.failed(), f.Revoked(0), w.frames)
		}
	})
}

func TestAMessageWhoseContextEndsIsNotPulled(t *testing.T) {
	run(t, func(t *testing.T, f *fake) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		f.rts(3, 5)
		f.recv(ctx, 10).check(t, "the receive", context.Canceled)
		if len(f.cts) > 0 || f.failed() != nil {
			t.Errorf("asked for is %v, and the endpoint has failed with %v", f.cts, f.failed())
		}
	})
}

func TestASendThatIsCancelledIsWithdrawn(t *testing.T) {
	run(t, func(t *testing.T, f *fake) {
		var p TaggedPeer
		var w wire
		done := f.send(t.Context(), &p, &w)
		ctx, cancel := context.WithCancel(t.Context())
		c := f.send(ctx, &p, &w)
		cancel()
		c.check(t, "the send", context.Canceled)
		if want := "[RTS 1 RTS 2 withdraw 2 no fragments 2]"; fmt.Sprint(w.frames) != want {
			t.Errorf("written are %v, want %s", w.frames, want)
		}
		f.with(func() {
			if p.CTS(2) != nil {
				t.Error("a message that was withdrawn is sent when it is asked for")
			}
			p.CTS(1).Complete()
		})
		done.check(t, "the other send", nil)
		if err := f.failed(); err != nil {
			t.Errorf("the endpoint has failed with %v", err)
		}
	})
}

// The peer asks for the contents after the context has ended, and before the goroutine
// of the Send has the lock: the memory goes back to the caller.
func TestAMessageIsNotSentAfterTheContextOfItsSendHasEnded(t *testing.T) {
	run(t, func(t *testing.T, f *fake) {
		var p TaggedPeer
		var w wire
		ctx, cancel := context.WithCancel(t.Context())
		c := f.send(ctx, &p, &w)
		f.with(func() {
			cancel()
			f.CheckContext(f.Ops()[0])
			if p.CTS(1) != nil {
				t.Error("the message is sent when it is asked for")
			}
		})
		c.check(t, "the send", context.Canceled)
		if want := "[RTS 1 withdraw 1 no fragments 1]"; fmt.Sprint(w.frames) != want {
			t.Errorf("written are %v, want %s", w.frames, want)
		}
	})
}

func TestNothingIsWithdrawnFromARankThatHasGone(t *testing.T) {
	run(t, func(t *testing.T, f *fake) {
		var p TaggedPeer
		w := wire{gone: true}
		c := f.send(t.Context(), &p, &w)
		f.with(func() { f.PeerGone(1, transport.ErrLost) })
		c.check(t, "the send", transport.ErrLost)
		if fmt.Sprint(w.frames) != "[RTS 1 no fragments 1]" {
			t.Errorf("written are %v", w.frames)
		}
	})
}

func TestARankThatHasGoneEndsTheWaitsForIt(t *testing.T) {
	run(t, func(t *testing.T, f *fake) {
		f.rts(3, 5)
		pulls := f.recv(t.Context(), 10)
		receives := f.recv(t.Context(), 10)
		other := do(func() error {
			_, err := f.Recv(t.Context(), 2, f.tag(1), "bytes", nil)
			return err
		})
		f.with(func() { f.peerErr = transport.ErrLeft; f.PeerGone(1, f.peerErr) })
		pulls.check(t, "the receive of a message on its way", transport.ErrLeft)
		receives.check(t, "the receive", transport.ErrLeft)
		other.waits(t, "a receive from another rank")
		f.with(func() { f.PeerGone(2, transport.ErrLost) })
		other.check(t, "the receive from the other rank", transport.ErrLost)
	})
}

func TestAReceiveEndsWhoseRankHasGoneBeforeItIsWaitedFor(t *testing.T) {
	run(t, func(t *testing.T, f *fake) {
		var r transport.Request
		f.StartRecv(t.Context(), &r, 1, f.tag(1), "bytes", nil)
		f.with(func() { f.peerErr = transport.ErrLeft; f.PeerGone(1, f.peerErr) })
		do(func() error { f.Wait(&r); return r.Err }).check(t, "the receive", transport.ErrLeft)
	})
}

func TestWhatARankSentBeforeItWentIsReceived(t *testing.T) {
	run(t, func(t *testing.T, f *fake) {
		c := f.recv(t.Context(), 0)
		f.polled = func(from int) {
			f.polled = nil
			m := f.Tagged().New(0)
			m.MessageInfo, m.Context = transport.MessageInfo{From: from, Tag: 1, Type: "bytes"}, 1
			f.Arrived(m)
		}
		f.with(func() { f.peerErr = transport.ErrLeft; f.PeerGone(1, f.peerErr) })
		c.check(t, "the receive", nil)
		f.recv(t.Context(), 0).check(t, "the next receive", transport.ErrLeft)
	})
}

func TestALongMessageToItselfIsSentWhenItIsReceived(t *testing.T) {
	data := make([]byte, match.EagerMax+1)
	send := func(f *fake, ctx context.Context, data []byte) call {
		return do(func() error { return f.Send(ctx, 0, f.tag(1), "bytes", data) })
	}
	recv := func(f *fake) call {
		return do(func() error {
			_, err := f.Recv(context.Background(), 0, f.tag(1), "bytes", make([]byte, len(data)))
			return err
		})
	}
	run(t, func(t *testing.T, f *fake) {
		send(f, t.Context(), data[1:]).check(t, "a short send", nil)
		c := send(f, t.Context(), data)
		c.waits(t, "a long send")
		recv(f).check(t, "the receive of the short message", nil)
		c.waits(t, "a long send")
		recv(f).check(t, "the receive of the long message", nil)
		c.check(t, "a long send", nil)

		ctx, cancel := context.WithCancel(t.Context())
		c = send(f, ctx, data)
		cancel()
		c.check(t, "a send that is cancelled", context.Canceled)
		if _, found, _ := f.Probe(t.Context(), 0, f.tag(1), false); found {
			t.Error("a message that was cancelled is still there")
		}
	})
}

func TestAReleasedContextReturnsTheCreditsOfItsMessages(t *testing.T) {
	run(t, func(t *testing.T, f *fake) {
		f.eager(1, 100)
		f.eager(2, 200)
		f.rts(1, 400)
		f.with(func() { f.ReleaseTagged(1) })
		if f.returned != 100 {
			t.Errorf("credits are returned for %d bytes, want 100", f.returned)
		}
		for context, want := range map[uint32]int{1: 400, 2: 200} {
			info, found, err := f.Probe(t.Context(), 1, f.tag(context), false)
			if err != nil || !found || info.Size != want {
				t.Errorf("context %d: found %+v, %v, %v, want %d bytes", context, info, found, err, want)
			}
		}
	})
}

func TestASendIsCheckedBeforeItBegins(t *testing.T) {
	run(t, func(t *testing.T, f *fake) {
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		f.with(func() {
			for to, want := range map[int]string{-1: "no rank -1: the job has ranks 0 to 2", 3: "no rank 3: the job has ranks 0 to 2"} {
				if err := f.checkSend(t.Context(), to, 0); err == nil || err.Error() != want {
					t.Errorf("to rank %d: %v, want %q", to, err, want)
				}
			}
			if err := f.checkSend(ended, 1, 0); err != context.Canceled {
				t.Errorf("with a context that has ended: %v", err)
			}
			if err := f.checkSend(t.Context(), 0, 0); err != nil {
				t.Errorf("to itself: %v", err)
			}
		})
		for _, from := range []int{-2, 3} {
			if _, _, err := f.Probe(t.Context(), from, f.tag(1), true); err == nil {
				t.Errorf("a message of rank %d is waited for", from)
			}
		}
		synctest.Wait()
	})
}

// A transfer that has begun needs no further call of either rank, however long it takes.
func TestATransferIsNoStall(t *testing.T) {
	run(t, func(t *testing.T, f *fake) {
		stalls := func() []transport.Stall { return f.Stalls(func(*Op, int) bool { return false }) }
		var (
			p TaggedPeer
			w wire
		)
		sending := f.send(t.Context(), &p, &w)
		if s := stalls(); len(s) != 1 {
			t.Errorf("stalls %+v of a message that is announced, want 1", s)
		}
		var sent *PendingSend
		f.with(func() { sent = p.CTS(1) })
		if s := stalls(); len(s) != 0 {
			t.Errorf("stalls %+v of a message whose contents are sent", s)
		}
		f.with(sent.Complete)
		sending.check(t, "the send", nil)

		f.rts(3, 5)
		receiving := f.recv(t.Context(), 10)
		if s := stalls(); len(s) != 0 {
			t.Errorf("stalls %+v of a message whose contents arrive", s)
		}
		f.with(func() { f.PeerGone(1, transport.ErrLeft) })
		receiving.check(t, "the receive", transport.ErrLeft)
	})
}

// A receive whose message was withdrawn is posted again, in its place.
func TestPostedReceivesStayInTheOrderOfTheirStarts(t *testing.T) {
	for seed := range uint64(1000) {
		random := rand.New(rand.NewPCG(seed, 0))
		var list messageList
		var want []*Message
		for numbers := random.Perm(6); len(numbers)+len(want) > 0; {
			if len(numbers) > 0 && (len(want) == 0 || random.IntN(2) > 0) {
				m := &Message{number: 1<<63 - 3 + uint64(numbers[0])}
				numbers = numbers[1:]
				list.add(m)
				want = append(want, m)
				slices.SortFunc(want, func(a, b *Message) int { return cmp.Compare(a.number, b.number) })
			} else {
				i := random.IntN(len(want))
				list.remove(want[i])
				want = slices.Delete(want, i, i+1)
			}
			var got, reversed []*Message
			for m := list.first; m != nil; m = m.next {
				got = append(got, m)
			}
			for m := list.last; m != nil; m = m.prev {
				reversed = append(reversed, m)
			}
			slices.Reverse(reversed)
			if !slices.Equal(got, want) || !slices.Equal(reversed, want) {
				t.Fatalf("seed %d: got %v and %v: want %v", seed, got, reversed, want)
			}
		}
	}
}

func TestASendBeyondTheBoundIsAnnouncedWhenAnotherEnds(t *testing.T) {
	run(t, func(t *testing.T, f *fake) {
		var (
			p    TaggedPeer
			w    wire
			last = uint32(match.AnnouncedMax)
		)
		f.peer, f.wire = &p, &w
		start := func(ctx context.Context) *transport.Request {
			r := new(transport.Request)
			f.StartSend(ctx, r, 1, f.tag(1), "bytes", []byte("contents"))
			return r
		}
		canceled := start(t.Context())
		for range match.AnnouncedMax - 1 {
			start(t.Context())
		}
		w.frames = nil
		dropped, one, two := start(t.Context()), start(t.Context()), start(t.Context())
		if len(w.frames) > 0 || p.Credits.Use(0) {
			t.Errorf("written are %v, and an eager message may follow: want neither", w.frames)
		}
		f.Cancel(dropped, context.Canceled)
		f.Cancel(canceled, context.Canceled)
		if want := fmt.Sprintf("[no fragments 0 withdraw 1 RTS %d no fragments 1]", last+1); fmt.Sprint(w.frames) != want {
			t.Errorf("after a withdrawal, written are %v, want %s", w.frames, want)
		}
		w.frames = nil
		f.with(func() {
			p.CTS(last + 1).Complete()
			p.AnnounceKeptBack()
		})
		if want := fmt.Sprintf("[RTS %d]", last+2); fmt.Sprint(w.frames) != want {
			t.Errorf("after a transfer, written are %v, want %s", w.frames, want)
		}
		if !one.Done() || two.Done() || dropped.Err != context.Canceled || !p.Credits.Use(0) {
			t.Errorf("the first send is done: %v, the second: %v, and no eager message may follow", one.Done(), two.Done())
		}
	})
}

// The memory of a request that is done is its caller's, who waits for nothing more.
func TestTheTransportIsToldOfARevocationBeforeARequestIsDone(t *testing.T) {
	run(t, func(t *testing.T, f *fake) {
		var r transport.Request
		f.StartRecv(t.Context(), &r, 1, f.tag(1), "bytes", make([]byte, 8))
		told := false
		f.atRevoke = func() { told = !r.Done() }
		f.Engine.Revoke(transport.Communicator(f.tag(1).Context), transport.ErrRevoked)
		if !told || !r.Done() {
			t.Errorf("told before: %v; done: %v", told, r.Done())
		}
	})
}
