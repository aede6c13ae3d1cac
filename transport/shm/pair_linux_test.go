package shm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
)

// Some messages find a pair cell, and others, because it is not free or they are too
// long, a cell of the ring.
func TestMessagesInPairCellsAndInTheRingAreReceivedInOrder(t *testing.T) {
	ends := job(t, 2)
	random := rand.New(rand.NewPCG(1, 2))
	var sent, received [2]uint32 // by sender
	message := func(from int, n uint32) []byte {
		sizes := []int{4, 32, inlineMax + 1, 900, pairMax, pairMax + 1, fastMax}
		b := make([]byte, sizes[int(n)*7%len(sizes)])
		binary.LittleEndian.PutUint32(b, n<<1|uint32(from))
		b[len(b)-1] ^= byte(n)
		return b
	}
	inPair, inRing := 0, 0
	for range 5000 {
		from := random.IntN(2)
		l := &ends[from].links[1-from]
		if unreceived := sent[from] - received[from]; unreceived < 10 && random.IntN(2) == 0 {
			before := l.pair.written
			data := message(from, sent[from])
			if err := ends[from].Exchange(t.Context(), transport.Step{Signature: sig, Sends: []transport.Send{{To: []int{1 - from}, Data: data}}}); err != nil {
				t.Fatal(err)
			}
			sent[from]++
			if l.pair.written == before {
				inRing++
			} else {
				inPair++
			}
		} else if unreceived > 0 {
			want := message(from, received[from])
			got := make([]byte, len(want))
			if err := receive(t.Context(), ends[1-from], sig, from, got); err != nil || string(got) != string(want) {
				t.Fatalf("message %d of rank %d: got %x…, %v", received[from], from, got[:4], err)
			}
			received[from]++
		}
	}
	if inPair < 100 || inRing < 100 {
		t.Errorf("%d messages were in pair cells, and %d in the ring: want both", inPair, inRing)
	}
}

// Ranks that exchange messages write where they have read, and so do ranks that take turns.
func TestTwoRanksThatTakeTurnsOrExchangeUseThePairCellsAlone(t *testing.T) {
	ends := job(t, 2)
	buf := make([]byte, pairMax)
	send := func(from int) error {
		return ends[from].Exchange(t.Context(), transport.Step{Signature: sig, Sends: []transport.Send{{To: []int{1 - from}, Data: buf}}})
	}
	recv := func(from int) error { return receive(t.Context(), ends[1-from], sig, from, buf) }
	usePairCellsAlone(t, ends, send, recv)
}

// usePairCellsAlone has two ranks take turns, and then exchange messages, by functions that send
// the message of a rank and receive it. All have to be in pair cells.
func usePairCellsAlone(t *testing.T, ends []*Endpoint, send, recv func(from int) error) {
	t.Helper()
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
	for i, e := range ends {
		if l := &e.links[1-i]; l.out.written != 0 || l.pair.written != 40 {
			t.Errorf("rank %d has sent %d messages in the ring, and %d in pair cells: want 0 and 40", i, l.out.written, l.pair.written)
		}
	}
}

// The type of a message has room beside the longest one of a step.
func TestTaggedMessagesOfTwoRanksThatTakeTurnsOrExchangeUseThePairCellsAlone(t *testing.T) {
	ends := job(t, 2)
	m := transport.Match{Context: 1, Tag: 2}
	sent, into := pattern(make([]byte, pairMax), 1), make([]byte, pairMax)
	send := func(from int) error { return ends[from].Send(t.Context(), 1-from, m, "complex128", sent) }
	recv := func(from int) error {
		clear(into)
		info, err := ends[1-from].Recv(t.Context(), from, m, "complex128", into)
		if err == nil && info != (transport.MessageInfo{From: from, Tag: 2, Size: pairMax, Type: "complex128"}) {
			return fmt.Errorf("received %+v", info)
		}
		return errors.Join(err, hasPattern(into, 1))
	}
	usePairCellsAlone(t, ends, send, recv)
}

// Tagged messages and those of steps, in pair cells, the ring and staging buffers, overtake
// none of their kind, and a message of a step that nobody expects keeps no tagged one back.
func TestTaggedMessagesAndStepsShareThePairCells(t *testing.T) {
	ends := job(t, 2)
	random := rand.New(rand.NewPCG(3, 4))
	m := transport.Match{Context: 2, Tag: 1}
	var sent, received [2][2]uint32 // by sender, and by whether it is tagged
	sizes := []int{4, 32, inlineMax + 1, pairMax, pairMax + 1, fastMax}
	message := func(from, tagged int, n uint32) []byte {
		b := make([]byte, sizes[int(n)*7%len(sizes)])
		binary.LittleEndian.PutUint32(b, n<<2|uint32(tagged)<<1|uint32(from))
		return b
	}
	for range 10000 {
		from, tagged := random.IntN(2), random.IntN(2)
		n := &sent[from][tagged]
		data := message(from, tagged, *n)
		unreceived := *n - received[from][tagged]
		step := transport.Step{Signature: sig, Sends: []transport.Send{{To: []int{1 - from}, Data: data}}}
		switch sends := unreceived < 5 && random.IntN(2) == 0; {
		case sends && tagged == 1:
			if err := ends[from].Send(t.Context(), 1-from, m, "bytes", data); err != nil {
				t.Fatal(err)
			}
			*n++
		case sends:
			if err := ends[from].Exchange(t.Context(), step); err != nil {
				t.Fatal(err)
			}
			*n++
		case unreceived > 0:
			want := message(from, tagged, received[from][tagged])
			got := make([]byte, len(want))
			var err error
			if tagged == 1 {
				_, err = ends[1-from].Recv(t.Context(), from, m, "bytes", got)
			} else {
				err = receive(t.Context(), ends[1-from], sig, from, got)
			}
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("message %d of rank %d, tagged %d: got %x…, %v", received[from][tagged], from, tagged, got[:4], err)
			}
			received[from][tagged]++
		}
	}
	for i, e := range ends {
		if l := &e.links[1-i]; l.pair.written < 100 || l.out.written < 100 {
			t.Errorf("rank %d has sent %d messages in pair cells, and %d in the ring: want both", i, l.pair.written, l.out.written)
		}
	}
}

func TestAMessageLeftInAPairCellByARankThatHasGoneIsAnError(t *testing.T) {
	ends := job(t, 2)
	e := ends[0]
	step := transport.Step{Signature: sig, Sends: []transport.Send{{To: []int{1}, Data: []byte("x")}}}
	e.engine.Lock()
	defer e.unlock()
	if !e.links[1].writePair(&match.Call{Signature: sig, Hash: e.calls.hash(sig.Call)}, step.Sends[0].Data) {
		t.Fatal("there is no pair cell")
	}
	if err := ends[1].Close(); err != nil {
		t.Fatal(err)
	}
	e.checkPeers()
	e.failUndelivered(&step, fastMax)
	if err := e.engine.ErrIn(sig.Context); !errors.Is(err, transport.ErrLeft) {
		t.Errorf("got %v, want %v", err, transport.ErrLeft)
	}
}

// Protocol 1, for pair cells: each rank fills a cell as soon as it has taken the frame
// of the other from it.
func TestAPairFrameIsWholeWhenItIsVisible(t *testing.T) {
	ends := job(t, 2)
	part := func(rank int) func(*litmus) {
		return func(l *litmus) {
			in := &ends[rank].links[1-rank]
			message := make([]byte, pairMax)
			for n := uint32(1); ; n++ {
				if !in.writePair(callNumber(n), pattern(message, n)) {
					l.errorf("no pair cell for message %d", n)
					return
				}
				ends[rank].wakePeers()
				var c *cell
				if !l.await(func() bool { c, _ = in.next(); return c != nil }) {
					return
				}
				h := *c.step()
				if want := (stepHeader{size: pairMax, context: 1, sequence: n, hash: n}); h != want {
					l.errorf("frame %d has header %+v", n, h)
				}
				if err := hasPattern(c.pair().data[:pairMax], n); err != nil {
					l.errorf("%v", err)
				}
				in.takePair(c)
				l.rounds.Add(1)
			}
		}
	}
	runLitmus(t, part(0), part(1))
}
