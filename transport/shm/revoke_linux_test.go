package shm

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
)

// in returns the signature of a communicator, and its number.
func in(number uint32) transport.Signature {
	return transport.Signature{Context: number<<transport.ContextBits | 1, Sequence: 1, Call: "test"}
}

// errEnough is why a rank gives up a communicator.
var errEnough = errors.New("enough")

// checkSound tests that all ranks exchange messages in another communicator, and that nothing
// is left of those that were revoked.
func checkSound(t *testing.T, ends []*Endpoint) {
	t.Helper()
	each(t, ends, func(e *Endpoint) error {
		for round := range uint32(2 * rendezvousMax) {
			s := in(1000)
			s.Sequence = round
			step, into := transport.Step{Signature: s}, make([]byte, 100_000)
			for peer := range ends {
				if peer != e.Rank() {
					step.Sends = append(step.Sends, transport.Send{To: []int{peer}, Data: bytes.Repeat([]byte{byte(e.Rank())}, len(into))})
					step.Recvs = append(step.Recvs, transport.Recv{From: peer, Into: bytes.Clone(into)})
				}
			}
			if err := e.Exchange(context.Background(), step); err != nil {
				return err
			}
			for _, r := range step.Recvs {
				if bytes.Count(r.Into, []byte{byte(r.From)}) != len(r.Into) {
					return fmt.Errorf("another message arrived from rank %d", r.From)
				}
			}
		}
		return nil
	})
	for _, e := range ends {
		until(e, func() bool {
			e.checkPeers()
			e.advance()
			left := len(e.out.queue) + len(e.out.rendezvous)
			for i := range e.links {
				l := &e.links[i]
				left += len(l.in.partials) + int(l.in.places) + int(l.out.places) + l.tagged.Waiters + len(l.tagged.copies)
			}
			return left == 0
		})
		if held := e.Held(); held.Unexpected+held.Tagged+held.Unsent > 0 {
			t.Errorf("rank %d holds %+v", e.Rank(), held)
		}
	}
}

// The sender cancels while its receiver is in the middle of the message, and then has
// something else in its memory. The receiver combines, and so tells when.
func TestAMessageThatIsCanceledInItsMiddleIsNotReceived(t *testing.T) {
	const size = 8 << 20
	for name, c := range map[string]struct {
		cfg   Config
		alloc bool
	}{"read": {}, "staged": {cfg: Config{NoCMA: true}}, "from the arena": {alloc: true}} {
		t.Run(name, func(t *testing.T) {
			ends := crew(t, 2, c.cfg)
			if !c.cfg.NoCMA && !c.alloc {
				needCMA(t, &ends[1].links[0])
			}
			data := make([]byte, size)
			if c.alloc {
				var err error
				if data, _, err = ends[0].Alloc(size); err != nil {
					t.Fatal(err)
				}
				defer ends[0].Free(data)
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			sent := make(chan error, 1)
			go func() { sent <- sendIn5(ctx, ends[0], data) }()
			canceled, pieces := false, 0
			err := ends[1].Exchange(t.Context(), transport.Step{Signature: in(5), Recvs: []transport.Recv{{
				From: 0, Into: make([]byte, size), Held: make([]byte, size), Elem: 1,
				Combine: func(_, _, incoming []byte) {
					if pieces++; pieces < 2 && len(incoming) < size {
						return
					}
					if !canceled {
						canceled = true
						cancel(errEnough)
						if err := <-sent; !errors.Is(err, errEnough) {
							t.Errorf("the sender got %v", err)
						}
						for i := range data {
							data[i] = 0xA5 // it is the caller's again
						}
					}
				},
			}}})
			var peer *transport.PeerError
			if !errors.As(err, &peer) || peer.Peer != 0 || peer.Err != transport.ErrAborted || peer.Reason != errEnough.Error() {
				t.Errorf("the receiver got %v", err)
			}
			checkSound(t, ends)
		})
	}
}

func sendIn5(ctx context.Context, e *Endpoint, data []byte) error {
	return e.Exchange(ctx, transport.Step{Signature: in(5), Sends: []transport.Send{{To: []int{1}, Data: data}}})
}

// Messages of all protocols begin, and are never received. Their receiver is in no call, or
// has them unexpected; or it asks for them, since it cannot read.
func TestNothingIsLeftOfMessagesThatWereCanceled(t *testing.T) {
	for name, c := range map[string]struct {
		sender, receiver Config // NoCMA
		held             bool   // the sender has no staging buffers
		waits            bool   // the receiver waits for something else
	}{
		"in the ring":                      {},
		"staged":                           {sender: Config{NoCMA: true}, receiver: Config{NoCMA: true}},
		"staged and unexpected":            {sender: Config{NoCMA: true}, receiver: Config{NoCMA: true}, waits: true},
		"announced and unexpected":         {waits: true},
		"the rest announced":               {sender: Config{NoCMA: true}, receiver: Config{NoCMA: true}, held: true},
		"the rest announced, unexpected":   {sender: Config{NoCMA: true}, receiver: Config{NoCMA: true}, held: true, waits: true},
		"announced to a rank that asks":    {receiver: Config{NoCMA: true}},
		"announced, unexpected, asked for": {receiver: Config{NoCMA: true}, waits: true},
	} {
		t.Run(name, func(t *testing.T) {
			ends := job(t, 2)
			ends[0].cfg.NoCMA, ends[1].cfg.NoCMA = c.sender.NoCMA, c.receiver.NoCMA
			if c.held {
				hold(ends[0])
			}
			other := make(chan error, 1)
			if c.waits {
				go func() { other <- receive(context.Background(), ends[1], in(900), 0, nil) }()
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			const communicators = rendezvousMax + 3
			sent := make(chan error, communicators)
			for n := range uint32(communicators) {
				go func() {
					step := transport.Step{Signature: in(n + 1)}
					for size := range 3 {
						step.Sends = append(step.Sends, transport.Send{To: []int{1}, Data: make([]byte, []int{100, 30_000, 200_000}[size])})
					}
					sent <- ends[0].Exchange(ctx, step)
				}()
			}
			until(ends[0], func() bool { return len(ends[0].engine.Ops())+len(sent) == communicators })
			time.Sleep(5 * time.Millisecond) // so that some have begun
			cancel(errEnough)
			for range communicators {
				if err := <-sent; err != nil && !errors.Is(err, errEnough) {
					t.Errorf("a sender got %v", err)
				}
			}
			for n := range uint32(communicators) {
				ends[1].Revoke(n+1, errEnough) // unless it has heard of it
			}
			if c.waits {
				if err := errors.Join(send(ends[0], in(900), 1, nil), <-other); err != nil {
					t.Error(err)
				}
			}
			checkSound(t, ends)
		})
	}
}

// The receiver reads in the memory of the sender, which has it back at any moment.
func TestATaggedMessageIsReceivedAsItWasOrNotAtAll(t *testing.T) {
	const size = 4 << 20
	for name, cfg := range map[string]Config{"read": {}, "asked for": {NoCMA: true}} {
		t.Run(name, func(t *testing.T) {
			ends := crew(t, 2, cfg)
			data, into, want := make([]byte, size), make([]byte, size), bytes.Repeat([]byte{1}, size)
			rounds := uint32(60)
			if testing.Short() {
				rounds = 20
			}
			for round := range rounds {
				m := transport.Match{Context: in(round + 1).Context, Tag: 3}
				copy(data, want)
				clear(into)
				var s transport.Request
				ends[0].StartSend(t.Context(), &s, 1, m, "bytes", data)
				received := make(chan error, 1)
				go func() {
					_, err := ends[1].Recv(context.Background(), 0, m, "bytes", into)
					received <- err
				}()
				for start := time.Now(); time.Since(start) < time.Duration(round)*20*time.Microsecond; {
					ends[0].Progress()
				}
				ends[0].Revoke(round+1, errEnough)
				for !s.Done() {
					yield()
				}
				for i := range data {
					data[i] = 2
				}
				if err := <-received; err == nil && !bytes.Equal(into, want) {
					t.Fatalf("round %d: another message arrived", round)
				}
			}
			checkSound(t, ends)
			if open := ends[0].out.offers.open; open != 0 {
				t.Errorf("offers %b are open", open)
			}
		})
	}
}

// A rank that sleeps until another one sends is told of the revocation by a third.
func TestARankIsToldOfARevocationWhileItSleeps(t *testing.T) {
	ends := job(t, 3)
	for _, e := range ends {
		e.wait.stallTimeout = time.Hour // else it looks at all ranks
	}
	received := make(chan error, 1)
	go func() { received <- receive(context.Background(), ends[0], in(5), 1, nil) }()
	until(ends[0], func() bool { return ends[0].engine.Asleep() })
	ends[2].Revoke(5, errEnough)
	select {
	case err := <-received:
		var peer *transport.PeerError
		if !errors.As(err, &peer) || peer.Peer != 2 || peer.Reason != errEnough.Error() {
			t.Errorf("got %v", err)
		}
	case <-time.After(hangs):
		t.Error("rank 0 sleeps")
		ends[0].Close()
		<-received
	}
}

// Rank 0 exchanges one message after another, and never waits for long.
func TestARankIsToldOfARevocationOnTheFastPath(t *testing.T) {
	ends := job(t, 3)
	begun, ended := make(chan struct{}), make(chan error, 2)
	for rank := range 2 {
		go func() {
			for round := uint32(0); ; round++ {
				s := in(5)
				s.Sequence = round
				err := ends[rank].Exchange(context.Background(), transport.Step{
					Signature: s, Sends: []transport.Send{{To: []int{1 - rank}, Data: make([]byte, 8)}},
					Recvs: []transport.Recv{{From: 1 - rank, Into: make([]byte, 8)}},
				})
				if err != nil {
					ended <- err
					return
				}
				if rank == 0 && round == 100 {
					close(begun)
				}
			}
		}()
	}
	<-begun
	ends[2].Revoke(5, errEnough)
	for range 2 {
		if err := <-ended; !errors.Is(err, transport.ErrAborted) {
			t.Errorf("got %v", err)
		}
	}
}

// Copies of messages wait for room at their sender. Close would wait for their receiver.
func TestCopiesOfARevokedCommunicatorAreDropped(t *testing.T) {
	for name, held := range map[string]bool{"queued": false, "announced": true} {
		t.Run(name, func(t *testing.T) {
			ends := crew(t, 2, Config{NoCMA: true})
			if held {
				hold(ends[0])
				ends[0].engine.Lock()
				for i := range ends[0].out.staging {
					ends[0].out.staging[i].readers = ends[0].out.staging[0].readers
				}
				ends[0].unlock()
			}
			m := transport.Match{Context: in(5).Context, Tag: 3}
			for range 40 { // more than there are cells
				if err := ends[0].Send(t.Context(), 1, m, "bytes", make([]byte, 1000)); err != nil {
					t.Fatal(err)
				}
			}
			if held {
				until(ends[0], func() bool { return len(ends[0].links[1].tagged.copies) > 0 })
			}
			if ends[0].Held().Unsent == 0 {
				t.Fatal("no copies wait")
			}
			ends[0].Revoke(5, errEnough)
			if n := ends[0].Held().Unsent; n != 0 {
				t.Errorf("copies of %d bytes wait", n)
			}
			begun := time.Now()
			if err := ends[0].Close(); err != nil || time.Since(begun) > 10*time.Second {
				t.Errorf("Close returns %v after %v", err, time.Since(begun))
			}
		})
	}
}

// Rank 1 looks at nothing while rank 0 revokes more communicators than it publishes. What
// rank 1 has with rank 2 alone goes on.
func TestARankThatMissesRevocationsWaitsForNothing(t *testing.T) {
	ends := job(t, 3)
	most := uint32(revocationsMax(ends[0].seg.rankWords()))
	first, last := uint32(10), 10+most
	for _, e := range ends[1:] {
		e.SetMembers(9, []int{1, 2})
	}
	ends[1].SetMembers(first, []int{0, 1})
	ends[1].SetMembers(last, []int{0, 1})
	for n := first; n <= last; n++ {
		ends[0].SetMembers(n, []int{0, 1})
		ends[0].Revoke(n, errEnough)
	}
	for _, n := range []uint32{first, last} {
		var peer *transport.PeerError
		if err := receive(t.Context(), ends[1], in(n), 0, nil); !errors.As(err, &peer) || peer.Peer != 0 {
			t.Errorf("in communicator %d: %v", n, err)
		}
	}
	if err := errors.Join(send(ends[2], in(9), 1, nil), receive(t.Context(), ends[1], in(9), 2, nil)); err != nil {
		t.Error(err)
	}
}

// Protocol 5, for revocations: what a reader takes for record n is record n.
func TestARevocationRecordIsReadWhole(t *testing.T) {
	var log revocationLog
	reader := func(l *litmus) {
		for heard := uint64(0); !l.over(); {
			for count := log.count.Load(); heard < count; heard++ {
				communicator, reason, told, ok := log.at(heard, 70, 2)
				if ok && (communicator != uint32(heard)&0xffff || reason != ^communicator || told != (heard%3 == 0)) {
					l.errorf("record %d is %d, %d, %v", heard, communicator, reason, told)
				}
			}
			l.rounds.Add(1)
		}
	}
	runLitmus(t, func(l *litmus) {
		for n := uint64(0); !l.over(); n++ {
			to := []uint64{^uint64(0), 0}
			if n%3 == 0 {
				to[1] = 1 << (70 - 64)
			}
			log.publish(uint32(n)&0xffff, ^(uint32(n) & 0xffff), to)
		}
	}, reader, reader)
}

// Protocol 5, for reasons.
func TestTheTextOfAReasonIsReadWhole(t *testing.T) {
	ends := job(t, 2)
	written, read := &ends[0].state.revocations, &ends[1].links[0].state.revocations
	text := func(n int) []byte { return bytes.Repeat([]byte{byte(n)}, 1+10*n) }
	const reasons = 3 * reasonsMax
	runLitmus(t, func(l *litmus) {
		for n, place := 0, 0; !l.over(); n++ {
			written.say(text(n%reasons), &place)
		}
	}, func(l *litmus) {
		for n := 0; !l.over(); n++ {
			want := text(n % reasons)
			if got := read.reason(hashOf(string(want))); got != nil && !bytes.Equal(got, want) {
				l.errorf("reason %d has %d bytes", n%reasons, len(got))
			}
			l.rounds.Add(1)
		}
	})
}

// Protocol 6: a reader of memory that its owner has given back does not take it for what
// it was.
func TestAReaderNoticesThatTheMemoryWasGivenBack(t *testing.T) {
	ends := job(t, 2)
	owned, read := ends[0].seg.staging(0, 0)[:512], ends[1].seg.staging(0, 0)[:512]
	s := ends[1].links[0].state
	runLitmus(t, func(l *litmus) { // the owner
		for n := uint32(1); !l.over(); n++ {
			ends[0].state.revocations.publish(n, 0, []uint64{1})
			pattern(owned, n)
			for range n % 8 {
				yield()
			}
		}
	}, func(l *litmus) {
		got := make([]byte, len(read))
		for !l.over() {
			heard := s.revocations.count.Load()
			if copy(got, read); !s.unchanged(heard) {
				continue
			}
			for i := 0; i < len(got); i += 8 {
				if n := uint64(binary.LittleEndian.Uint32(got[i+4:])); n > heard {
					l.errorf("after %d revocations, the memory is that of %d", heard, n)
				}
			}
			l.rounds.Add(1)
		}
	})
}
