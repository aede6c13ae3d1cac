package inproc

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
)

var pairSig = transport.Signature{Context: 1, Sequence: 1, Call: "pair"}

func pairSend(ctx context.Context, e *Endpoint, data []byte) error {
	return e.Exchange(ctx, transport.Step{Signature: pairSig, Sends: []transport.Send{{To: []int{1 - e.Rank()}, Data: data}}})
}

func pairRecv(ctx context.Context, e *Endpoint, into []byte) error {
	return e.Exchange(ctx, transport.Step{Signature: pairSig, Recvs: []transport.Recv{{From: 1 - e.Rank(), Into: into}}})
}

// Some messages find a pair cell, and others a cell of the link.
func TestMessagesInPairCellsAndInTheLinkAreReceivedInOrder(t *testing.T) {
	j := New(2)
	random := rand.New(rand.NewPCG(1, 2))
	var sent, received [2]uint32 // by sender
	message := func(from int, n uint32) []byte {
		sizes := []int{4, inlineMax, inlineMax + 1, 900, bufferedMax}
		b := make([]byte, sizes[int(n)*3%len(sizes)])
		binary.LittleEndian.PutUint32(b, n<<1|uint32(from))
		b[len(b)-1] ^= byte(n)
		return b
	}
	for range 5000 {
		from := random.IntN(2)
		// A link and the pair cells have room for three messages at least.
		if unreceived := sent[from] - received[from]; unreceived < depth && random.IntN(2) == 0 {
			if err := pairSend(t.Context(), j.Endpoint(from), message(from, sent[from])); err != nil {
				t.Fatal(err)
			}
			sent[from]++
		} else if unreceived > 0 {
			want := message(from, received[from])
			got := make([]byte, len(want))
			if err := pairRecv(t.Context(), j.Endpoint(1-from), got); err != nil || string(got) != string(want) {
				t.Fatalf("message %d of rank %d: got %x…, %v", received[from], from, got[:4], err)
			}
			received[from]++
		}
	}
	for from := range 2 {
		l := j.Endpoint(from).comm(pairSig.Context).out.get(1 - from)
		if inPair := l.pair.sides[from].written; inPair < 100 || l.sender.written < 100 {
			t.Errorf("rank %d has sent %d messages in pair cells, and %d in the link: want both", from, inPair, l.sender.written)
		}
	}
}

func TestTwoRanksThatTakeTurnsOrExchangeUseThePairCellsAlone(t *testing.T) {
	j := New(2)
	buf := make([]byte, bufferedMax)
	send := func(from int) error { return pairSend(t.Context(), j.Endpoint(from), buf) }
	recv := func(from int) error { return pairRecv(t.Context(), j.Endpoint(1-from), buf) }
	for range 20 {
		if err := errors.Join(send(0), recv(0), send(1), recv(1)); err != nil { // in turns
			t.Fatal(err)
		}
	}
	for range 20 {
		if err := errors.Join(send(0), send(1), recv(0), recv(1)); err != nil { // an exchange
			t.Fatal(err)
		}
	}
	for from := range 2 {
		l := j.Endpoint(from).comm(pairSig.Context).out.get(1 - from)
		if inPair := l.pair.sides[from].written; inPair != 40 || l.sender.written != 0 {
			t.Errorf("rank %d has sent %d messages in pair cells, and %d in the link: want 40 and 0", from, inPair, l.sender.written)
		}
	}
}

// Held counts a message in a pair cell, and CheckUnreceived finds it.
func TestAMessageInAPairCellIsHeldUntilItIsReceived(t *testing.T) {
	j := New(2)
	if err := pairSend(t.Context(), j.Endpoint(0), []byte("x")); err != nil {
		t.Fatal(err)
	}
	e := j.Endpoint(1)
	into := make([]byte, 1)
	e.comm(pairSig.Context).linkFrom(0)
	var unreceived *transport.UnreceivedError
	if err := e.CheckUnreceived(); !errors.As(err, &unreceived) || e.Held().Unexpected == 0 {
		t.Errorf("%d bytes are held, %v", e.Held().Unexpected, err)
	}
	if err := pairRecv(t.Context(), e, into); err != nil {
		t.Fatal(err)
	}
	if err := e.CheckUnreceived(); err != nil || e.Held().Unexpected != 0 {
		t.Errorf("after it was received: %d bytes are held, %v", e.Held().Unexpected, err)
	}
}

func TestARankThatEndsHasReadOrLeftAMessageInAPairCell(t *testing.T) {
	for _, read := range []bool{false, true} {
		j := New(2)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		sender := j.Endpoint(0).comm(pairSig.Context)
		l, err := sender.linkTo(1)
		if err != nil {
			t.Fatal(err)
		}
		if !l.write(&pairSig, []byte("x")) || l.sender.written != 0 {
			t.Fatal("the message is not in a pair cell")
		}
		if read {
			if err := pairRecv(ctx, j.Endpoint(1), make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := l.unreadInPair(), map[bool]int{false: 1, true: 0}[read]; got != want {
			t.Errorf("read: %v, but %d messages are unread", read, got)
		}
		j.Endpoint(1).Close()
		if err := pairSend(ctx, j.Endpoint(0), []byte("y")); !errors.Is(err, transport.ErrLeft) {
			t.Errorf("a message to a rank that has left: %v", err)
		}
	}
}
