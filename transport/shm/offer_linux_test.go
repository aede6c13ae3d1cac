package shm

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
)

// long is longer than an eager message.
func long() []byte { return bytes.Repeat([]byte("long"), match.EagerMax/2) }

var tag2 = transport.Match{Context: 1, Tag: 2}

// The receiver reads after the announcement: nothing is asked for, and nothing answered but
// that it has read.
func TestALongMessageTakesOneFrameEachWay(t *testing.T) {
	ends := job(t, 2)
	needCMA(t, &ends[0].links[1])
	needCMA(t, &ends[1].links[0])
	for n := range uint32(2 * offersMax) {
		message, into := long(), make([]byte, len(long()))
		var s, r transport.Request
		ends[1].StartRecv(t.Context(), &r, 0, tag2, "bytes", into)
		ends[0].StartSend(t.Context(), &s, 1, tag2, "bytes", message)
		ends[1].Wait(&r)
		ends[0].Wait(&s)
		if err := errors.Join(s.Err, r.Err); err != nil || !bytes.Equal(into, message) {
			t.Fatalf("message %d: another one arrived, or %v", n, err)
		}
		if there, back := ends[0].links[1].out.written, ends[1].links[0].out.written; there != n+1 || back != n+1 {
			t.Fatalf("%d frames there and %d back after %d messages", there, back, n+1)
		}
	}
	if open := ends[0].out.offers.open; open != 0 {
		t.Errorf("offers %b are open", open)
	}
}

// Two ranks exchange long messages: each announces its own before it reads the other's, so
// that both read at the same time.
func TestALongMessageIsAnnouncedBeforeOthersAreRead(t *testing.T) {
	ends := job(t, 2)
	needCMA(t, &ends[0].links[1])
	needCMA(t, &ends[1].links[0])
	var s, r [2]transport.Request
	for i, e := range ends {
		e.StartRecv(t.Context(), &r[i], 1-i, tag2, "bytes", make([]byte, len(long())))
	}
	for i, e := range ends {
		e.StartSend(t.Context(), &s[i], 1-i, tag2, "bytes", long())
	}
	if ends[1].links[0].out.written != 1 || r[1].Done() {
		t.Error("rank 1 has read a message before its own is announced")
	}
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		ends[0].Wait(&r[0])
		ends[0].Wait(&s[0])
	}()
	ends[1].Wait(&r[1])
	ends[1].Wait(&s[1])
	<-waited
	if err := errors.Join(s[0].Err, s[1].Err, r[0].Err, r[1].Err); err != nil {
		t.Error(err)
	}
}

// More messages are announced than there are offers; the rest is asked for.
func TestLongMessagesBeyondTheOffersArrive(t *testing.T) {
	const messages = offersMax + 3
	ends := job(t, 2)
	var sends, receives [messages]transport.Request
	message := long()
	for i := range sends {
		ends[0].StartSend(t.Context(), &sends[i], 1, tag2, "bytes", message)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range sends {
			ends[0].Wait(&sends[i])
		}
	}()
	into := make([]byte, len(message))
	for i := range receives {
		clear(into)
		ends[1].StartRecv(t.Context(), &receives[i], 0, tag2, "bytes", into)
		ends[1].Wait(&receives[i])
		if err := receives[i].Err; err != nil || !bytes.Equal(into, message) {
			t.Fatalf("message %d: another one arrived, or %v", i, err)
		}
	}
	<-done
	for i := range sends {
		if err := sends[i].Err; err != nil {
			t.Errorf("send %d: %v", i, err)
		}
	}
}

// The sender cancels while the receiver looks. If the cancellation comes first, the memory
// is the sender's again, and the receiver gets the next message.
func TestAMessageIsReadOrWithdrawnAndNotBoth(t *testing.T) {
	ends := job(t, 2)
	needCMA(t, &ends[0].links[1])
	needCMA(t, &ends[1].links[0])
	withdrawn := errors.New("withdrawn")
	into := make([]byte, len(long()))
	for round := range 200 {
		first, second := long(), bytes.Repeat([]byte{2}, len(long()))
		var s, next, r transport.Request
		ends[0].StartSend(t.Context(), &s, 1, tag2, "bytes", first)
		received := make(chan struct{})
		go func() {
			defer close(received)
			ends[1].StartRecv(context.Background(), &r, 0, tag2, "bytes", into)
			ends[1].Wait(&r)
		}()
		for range round {
			ends[0].engine.Owned()
		}
		ends[0].Cancel(&s, withdrawn)
		ends[0].Wait(&s)
		taken := s.Err == nil
		if !taken {
			clear(first) // it is the caller's again
			ends[0].StartSend(t.Context(), &next, 1, tag2, "bytes", second)
			ends[0].Wait(&next)
		}
		<-received
		want := long()
		if !taken {
			want = second
		}
		if r.Err != nil || !bytes.Equal(into, want) || s.Err != nil && s.Err != withdrawn {
			t.Fatalf("round %d: taken %v, another message arrived, or %v, %v", round, taken, r.Err, s.Err)
		}
	}
	if open := ends[0].out.offers.open; open != 0 {
		t.Errorf("offers %b are open", open)
	}
}

// An announcement that its receiver meets late does not take a later message of its place.
func TestOneSideDecidesAboutAnOffer(t *testing.T) {
	var (
		s     rankState
		o     offers
		wins  [2]atomic.Uint64
		round atomic.Uint64
	)
	const place = 5
	side := func(l *litmus, i uint64) {
		for n := uint64(1); ; n++ {
			if s.decide(offer(n*offersMax + place)) {
				wins[i].Add(1)
			}
			if s.decide(offer(n*offersMax + place)) {
				l.errorf("offer %d is decided again", n)
			}
			for round.Add(1); round.Load() < 2*n; {
				if l.over() {
					return
				}
				yield()
			}
			l.rounds.Add(1)
		}
	}
	runLitmus(t, func(l *litmus) { side(l, 0) }, func(l *litmus) { side(l, 1) })
	if n, all := wins[0].Load()+wins[1].Load(), (round.Load()+1)/2; n != all {
		t.Errorf("%d of %d offers were decided by one side", n, all)
	}
	for range offersMax {
		if o.next() == 0 {
			t.Error("an offer is missing")
		}
	}
	if o.next() != 0 {
		t.Error("an offer more than there are places")
	}
}
