package progress

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
)

var errWhyNot = errors.New("why not")

// lostRank is what peers are told of a rank that is lost.
func lostRank(rank int) *transport.PeerError {
	return &transport.PeerError{Peer: rank, Err: transport.ErrLost, Reason: "gone"}
}

// probe begins to wait for a tagged message in a context.
func (f *fake) probe(from int, context uint32) call {
	return do(func() error { _, _, err := f.Probe(f.t.Context(), from, f.tag(context), true); return err })
}

// receive begins to receive a tagged message in a context.
func (f *fake) receive(from int, context uint32) call {
	return do(func() error { _, err := f.Recv(f.t.Context(), from, f.tag(context), "bytes", nil); return err })
}

// hear has a peer say that a communicator is revoked.
func (f *fake) hear(communicator uint32, why *transport.PeerError) (err error) {
	f.with(func() { err = f.HearRevocation(communicator, AppendRevocation(nil, why)) })
	return err
}

func TestARevocationEndsWhatIsInProgressInItsCommunicatorAlone(t *testing.T) {
	run(t, func(t *testing.T, f *fake) {
		var p TaggedPeer
		var w wire
		f.peer, f.wire = &p, &w
		begin := func(communicator uint32) map[string]call {
			return map[string]call{
				"the step":             do(func() error { return f.exchange(t.Context(), step(in(communicator, 1))) }),
				"the receive":          f.receive(1, in(communicator, 0)),
				"the receive from any": f.receive(transport.Any, in(communicator, 2)),
				"the probe":            f.probe(1, in(communicator, 3)),
				"the send":             do(func() error { return f.Send(t.Context(), 1, f.tag(in(communicator, 0)), "bytes", nil) }),
			}
		}
		ends, goes := begin(5), begin(6)
		resilient := f.receive(1, transport.ResilientContext(5))
		f.Engine.Revoke(5, errWhyNot)
		f.Engine.Revoke(5, errors.New("once more"))
		for what, c := range ends {
			c.check(t, what, errWhyNot)
		}
		for what, c := range goes {
			c.waits(t, what+" of another communicator")
		}
		resilient.waits(t, "the receive in the resilient context")
		for name, c := range begin(5) {
			c.check(t, name+" afterwards", errWhyNot)
		}
		if f.Revoked(5) != errWhyNot || f.Revoked(6) != nil {
			t.Errorf("the errors are %v and %v", f.Revoked(5), f.Revoked(6))
		}
		if want := []string{"5: rank 0: the rank gave up: why not"}; !slices.Equal(f.revoked, want) {
			t.Errorf("the peers are told %q, want %q", f.revoked, want)
		}
		if want := "[RTS 1 RTS 2 no fragments 1]"; fmt.Sprint(w.frames) != want {
			t.Errorf("written are %v, want %s: the peer drops the message", w.frames, want)
		}
	})
}

func TestWhatIsNotReceivedIsDroppedWithItsCommunicator(t *testing.T) {
	run(t, func(t *testing.T, f *fake) {
		f.eager(in(5, 0), 7)
		f.eager(in(6, 0), 8)
		f.eager(transport.ResilientContext(5), 9)
		f.rts(3, 5) // of communicator 0
		f.Engine.Revoke(5, errWhyNot)
		if f.returned != 7 {
			t.Errorf("credits are returned for %d bytes, want 7", f.returned)
		}
		f.eager(in(5, 4), 10)
		if f.returned != 17 {
			t.Errorf("credits are returned for %d bytes, want 17: what arrives later is dropped, too", f.returned)
		}
		f.Engine.Revoke(0, errWhyNot)
		f.rts(4, 5)
		var left []uint32
		for _, context := range []uint32{0, in(5, 0), in(5, 4), in(6, 0), transport.ResilientContext(5)} {
			if f.Tagged().Find(&match.Pattern{From: transport.Any, Match: transport.Match{Context: context, Tag: transport.Any}}) != nil {
				left = append(left, context)
			}
		}
		if want := []uint32{in(6, 0), transport.ResilientContext(5)}; !slices.Equal(left, want) {
			t.Errorf("left are messages of the contexts %#x, want %#x", left, want)
		}
		if m := f.Tagged().FirstUnreceived(); m == nil || m.Context != in(6, 0) {
			t.Errorf("unreceived is %+v, want the message of communicator 6", m)
		}
	})
}

func TestAPeersRevocationIsForwardedOnce(t *testing.T) {
	run(t, func(t *testing.T, f *fake) {
		heard := make(chan string, 10)
		f.OnRevoke(func(communicator uint32, why *transport.PeerError) { heard <- fmt.Sprintf("%d: %v", communicator, why) })
		f.SetMembers(5, []int{0, 2})
		c := do(func() error { return f.exchange(t.Context(), step(in(5, 1))) })
		for range 2 {
			if err := f.hear(5, lostRank(2)); err != nil {
				t.Error(err)
			}
		}
		c.check(t, "the step", transport.ErrLost)
		if want := []string{"5: rank 2: the rank is lost: gone"}; !slices.Equal(f.revoked, want) {
			t.Errorf("forwarded is %q, want %q", f.revoked, want)
		}
		synctest.Wait()
		if got := <-heard; got != f.revoked[0] || len(heard) > 0 {
			t.Errorf("heard is %q, and %d more", got, len(heard))
		}
		if f.Told(5, 0) || f.Told(5, 1) || !f.Told(5, 2) || !f.Told(6, 1) {
			t.Error("told are others than the members")
		}
		for peer, want := range map[int]int{1: 0, 2: 1} {
			n := 0
			for range f.Revocations(peer) {
				n++
			}
			if n != want {
				t.Errorf("rank %d is told of %d revocations when its link comes up, want %d", peer, n, want)
			}
		}
	})
}

func TestALostRankRevokesItsCommunicators(t *testing.T) {
	run(t, func(t *testing.T, f *fake) {
		f.SetMembers(5, []int{0, 1})
		f.SetMembers(6, []int{0, 2})
		five := f.receive(1, in(5, 0))
		six := f.receive(2, in(6, 0))
		seven := f.receive(1, in(7, 0)) // a communicator of all
		resilient := f.receive(1, transport.ResilientContext(5))
		f.with(func() { f.PeerGone(2, lostRank(2)) })
		five.waits(t, "a receive in another communicator")
		six.check(t, "a receive in a communicator of the rank", transport.ErrLost)
		seven.check(t, "a receive in a communicator of all", transport.ErrLost)
		slices.Sort(f.revoked)
		if got := strings.Join(f.revoked, "; "); got != "0: rank 2: the rank is lost: gone; 6: rank 2: the rank is lost: gone; 7: rank 2: the rank is lost: gone" {
			t.Errorf("revoked are %s", got)
		}
		resilient.waits(t, "a receive in a resilient context")
	})
}

func TestARankThatHasLeftRevokesNothingByItself(t *testing.T) {
	run(t, func(t *testing.T, f *fake) {
		c := do(func() error { return f.exchange(t.Context(), step(in(5, 1))) })
		left := &transport.PeerError{Peer: 2, Err: transport.ErrLeft}
		f.with(func() { f.PeerGone(2, left) })
		c.waits(t, "a step that waits for another rank")
		f.with(func() { f.FailStep(f.StepIn(in(5, 1)), left) })
		c.check(t, "the step", left)
		if want := []string{"5: " + left.Error()}; !slices.Equal(f.revoked, want) {
			t.Errorf("revoked are %q, want %q", f.revoked, want)
		}
	})
}

// The survivors agree on a communicator, and the messages of one arrive before another of
// them knows who its members are.
func TestACommunicatorWithoutALostRankGoesOn(t *testing.T) {
	run(t, func(t *testing.T, f *fake) {
		f.with(func() { f.PeerGone(2, lostRank(2)) })
		f.eager(in(5, 0), 0)
		f.SetMembers(5, []int{0, 1})
		f.receive(1, in(5, 0)).check(t, "a receive", nil)
		f.SetMembers(6, []int{0, 2})
		f.SetMembers(6, nil)
		f.receive(1, in(6, 0)).check(t, "a receive in a communicator with the lost rank", transport.ErrLost)
		f.receive(1, in(7, 0)).check(t, "a receive in a communicator of all", transport.ErrLost)
	})
}

func TestARevocationThatComesBeforeTheMembersIsForwardedToThemAlone(t *testing.T) {
	run(t, func(t *testing.T, f *fake) {
		if err := f.hear(5, lostRank(2)); err != nil || len(f.revoked) > 0 {
			t.Errorf("forwarded is %q, %v, although the members are not known", f.revoked, err)
		}
		f.eager(in(5, 0), 7)
		f.SetMembers(5, []int{0, 2})
		if len(f.revoked) != 1 || f.returned != 7 {
			t.Errorf("forwarded is %q, and credits of %d bytes are returned", f.revoked, f.returned)
		}
		if err := f.hear(6, lostRank(2)); err != nil {
			t.Error(err)
		}
		f.receive(1, in(6, 0)).check(t, "the first receive in a communicator of all", transport.ErrLost)
	})
}

func TestAPeerRevokesABoundedNumberOfUnknownCommunicators(t *testing.T) {
	run(t, func(t *testing.T, f *fake) {
		for n := range uint32(earlyMax) {
			if err := f.hear(n+1, lostRank(2)); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.hear(earlyMax, lostRank(2)); err != nil {
			t.Errorf("once more: %v", err)
		}
		if f.hear(earlyMax+1, lostRank(2)) == nil {
			t.Error("there is no bound")
		}
		f.SetMembers(1, []int{0, 1})
		if err := f.hear(earlyMax+1, lostRank(2)); err != nil {
			t.Errorf("after one has become known: %v", err)
		}
	})
}

func TestAReceiveFromAnyLooksAtTheMembersOfItsCommunicator(t *testing.T) {
	run(t, func(t *testing.T, f *fake) {
		f.SetMembers(5, []int{0, 1})
		f.SetMembers(6, []int{0})
		gone := map[int]error{2: lostRank(2)}
		look := func(communicator uint32) error {
			return f.AllGone(in(communicator, 0), func(peer int) error { return gone[peer] })
		}
		if err := look(0); !errors.Is(err, transport.ErrLost) {
			t.Errorf("all ranks: %v", err)
		}
		for _, communicator := range []uint32{5, 6} { // a rank may send to itself
			if err := look(communicator); err != nil {
				t.Errorf("communicator %d: %v", communicator, err)
			}
		}
		gone[1] = &transport.PeerError{Peer: 1, Err: transport.ErrLeft}
		var who *transport.PeerError
		if err := look(5); !errors.As(err, &who) || who.Err != transport.ErrAllLeft || who.Peer != 1 {
			t.Errorf("communicator 5 when all others have left: %v", err)
		}
	})
}

func TestAContextThatHasEndedRevokesTheCommunicatorOfItsStep(t *testing.T) {
	run(t, func(t *testing.T, f *fake) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errWhyNot)
		do(func() error { return f.exchange(ctx, step(in(5, 1))) }).check(t, "the step", errWhyNot)
		if f.failed() != nil || !errors.Is(f.Revoked(5), errWhyNot) || f.Revoked(6) != nil {
			t.Errorf("failed have the endpoint with %v, its communicators with %v and %v", f.failed(), f.Revoked(5), f.Revoked(6))
		}
	})
}

func TestATransferInAResilientContextTakesTheEndpointAlong(t *testing.T) {
	run(t, func(t *testing.T, f *fake) {
		var p TaggedPeer
		var w wire
		f.peer, f.wire = &p, &w
		ctx, cancel := context.WithCancelCause(t.Context())
		c := do(func() error {
			return f.Send(ctx, 1, f.tag(transport.ResilientContext(5)), "bytes", []byte("contents"))
		})
		f.with(func() { p.CTS(1) })
		cancel(errWhyNot)
		c.check(t, "the send", errWhyNot)
		if !errors.Is(f.failed(), errWhyNot) {
			t.Errorf("the endpoint has failed with %v", f.failed())
		}
	})
}

// The peer has found the mismatch, and this rank is in a later call already.
func TestAMismatchInAnEarlierCallIsTheErrorOfLaterCalls(t *testing.T) {
	run(t, func(t *testing.T, f *fake) {
		m := &transport.MismatchError{Rank: 0, Peer: 1, Mine: transport.Signature{Sequence: 7}}
		f.with(func() { f.PeerGone(1, m) })
		do(func() error { return f.exchange(t.Context(), step(0)) }).check(t, "the next step", m)
		if want := "0: " + (&transport.PeerError{Peer: 1, Err: transport.ErrAborted, Reason: m.Error()}).Error(); !slices.Equal(f.revoked, []string{want}) {
			t.Errorf("others are told %q, want %q", f.revoked, want)
		}
	})
}

func TestASendEndsWhoseCommunicatorIsFoundRevokedAsItIsSent(t *testing.T) {
	run(t, func(t *testing.T, f *fake) {
		var p TaggedPeer
		var w wire
		f.peer, f.wire = &p, &w
		f.SetMembers(5, []int{0, 1})
		f.polled = func(int) {
			f.polled = nil
			if err := f.HearRevocation(5, AppendRevocation(nil, lostRank(1))); err != nil {
				t.Error(err)
			}
		}
		do(func() error { return f.Send(t.Context(), 1, f.tag(in(5, 0)), "bytes", nil) }).check(t, "the send", transport.ErrLost)
		if len(w.frames) > 0 {
			t.Errorf("written are %v", w.frames)
		}
	})
}

func TestARevocationIsReadAsItWasWritten(t *testing.T) {
	for _, err := range revocationErrors {
		run(t, func(t *testing.T, f *fake) {
			f.SetMembers(5, []int{0, 1})
			why := &transport.PeerError{Peer: 1, Err: err, Reason: strings.Repeat("x", 2*ReasonMax)}
			if err := f.hear(5, why); err != nil {
				t.Fatal(err)
			}
			want := *why
			want.Reason = want.Reason[:ReasonMax]
			if got := f.Revoked(5); got.Error() != want.Error() || !errors.Is(got, err) {
				t.Errorf("got %v, want %v", got, &want)
			}
		})
	}
}

func FuzzHearRevocation(f *testing.F) {
	f.Add(uint32(5), AppendRevocation(nil, lostRank(2)))
	f.Add(uint32(5), AppendRevocation(nil, lostRank(3)))
	f.Add(uint32(1<<20), AppendRevocation(nil, lostRank(1)))
	f.Add(uint32(6), []byte("\x07\x00\x00\x00\x00"))
	f.Add(uint32(0), []byte("\x03"))
	f.Fuzz(func(t *testing.T, communicator uint32, b []byte) {
		run(t, func(t *testing.T, f *fake) {
			f.SetMembers(5, []int{0, 1})
			var err error
			f.with(func() { err = f.HearRevocation(communicator, b) })
			why := f.Revoked(communicator)
			if err != nil {
				if len(f.revoked) > 0 {
					t.Errorf("%q is refused, and revokes %q", b, f.revoked)
				}
				return
			}
			said, ok := why.(*transport.PeerError)
			if !ok || said.Peer < 0 || said.Peer >= f.Size || len(f.revoked) != 1 {
				t.Fatalf("%q revokes communicator %d with %v", b, communicator, cmp.Or(why, errors.New("nothing")))
			}
			if again := AppendRevocation(nil, said); string(again) != string(b) {
				t.Errorf("%q is forwarded as %q", b, again)
			}
		})
	})
}
