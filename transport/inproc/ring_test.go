package inproc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
)

// Messages of all lengths, the ring's and longer ones, are received in the order in which
// they were sent, also when they do not fit the ring, and before a rank sleeps as after.
func TestRingAndQueueKeepTheOrder(t *testing.T) {
	const messages = 3000
	j := New(2)
	m := transport.Match{Context: 1, Tag: 2}
	size := func(i int) int { return []int{0, 8, taggedInlineMax + 1, ringMax, ringMax + 1, 70000}[i*i%6] }
	sent := make(chan error, 1)
	go func() {
		var err error
		for i := 0; i < messages && err == nil; i++ {
			data := make([]byte, size(i))
			for k := range data {
				data[k] = byte(i + k)
			}
			err = j.Endpoint(0).Send(context.Background(), 1, m, "uint8", data)
		}
		sent <- err
	}()
	into := make([]byte, 70000)
	for i := range messages {
		info, err := j.Endpoint(1).Recv(context.Background(), []int{0, transport.Any}[i%2], m, "uint8", into)
		if err != nil || info.Size != size(i) {
			t.Fatalf("message %d: %+v, %v: want %d bytes", i, info, err, size(i))
		}
		for k, b := range into[:info.Size] {
			if b != byte(i+k) {
				t.Fatalf("message %d: byte %d is %d, want %d", i, k, b, byte(i+k))
			}
		}
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
}

// Messages that find a pair cell, and those that do not, because it is not free or they are
// too long, are received in the order in which they were sent, whatever receives them.
func TestPairCellsRingAndQueueKeepTheOrder(t *testing.T) {
	j := New(2)
	ends := [2]*Endpoint{j.Endpoint(0), j.Endpoint(1)}
	m := transport.Match{Context: 1, Tag: 2}
	random := rand.New(rand.NewPCG(1, 2))
	sizes := []int{0, 8, taggedInlineMax + 1, ringMax, ringMax + 1, eagerMin}
	var sent, received [2]int // by sender
	message := func(from, n int) []byte {
		b := make([]byte, sizes[n*n%len(sizes)])
		for i := range b {
			b[i] = byte(n + i + from)
		}
		return b
	}
	for range 20000 {
		from := random.IntN(2)
		sender, receiver := ends[from], ends[1-from]
		if unreceived := sent[from] - received[from]; unreceived < 2*ringDepth && random.IntN(2) == 0 {
			if err := sender.Send(t.Context(), 1-from, m, "uint8", message(from, sent[from])); err != nil {
				t.Fatal(err)
			}
			sent[from]++
		} else if unreceived > 0 {
			want := message(from, received[from])
			got := make([]byte, eagerMin)
			var r transport.Request
			switch random.IntN(3) {
			case 0:
				r.Info, r.Err = receiver.Recv(t.Context(), []int{from, transport.Any}[random.IntN(2)], m, "uint8", got)
			case 1:
				receiver.StartRecv(t.Context(), &r, from, m, "uint8", got)
				receiver.Wait(&r)
			default:
				if _, found, err := receiver.Probe(t.Context(), from, m, false); !found || err != nil {
					t.Fatalf("message %d of rank %d is not found: %v", received[from], from, err)
				}
				r.Info, _, r.Err = receiver.TryRecv(t.Context(), from, m, "uint8", got)
			}
			if r.Err != nil || !bytes.Equal(got[:r.Info.Size], want) {
				t.Fatalf("message %d of rank %d is %+v, %v: want %d bytes", received[from], from, r.Info, r.Err, len(want))
			}
			received[from]++
		}
	}
	for i, e := range ends {
		if r := e.tagged.ringOf(1 - i); r.inPair < 100 || r.number < 100 {
			t.Errorf("%d messages to rank %d were in pair cells, and %d in the ring: want both", r.inPair, i, r.number)
		}
	}
}

func TestTaggedMessagesOfTwoRanksThatTakeTurnsOrExchangeUseThePairCellsAlone(t *testing.T) {
	j := New(2)
	m := transport.Match{Context: 1, Tag: 2}
	buf := make([]byte, ringMax)
	send := func(from int) error { return j.Endpoint(from).Send(t.Context(), 1-from, m, "uint8", buf) }
	recv := func(from int) error {
		_, err := j.Endpoint(1-from).Recv(t.Context(), from, m, "uint8", buf)
		return err
	}
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
	for i := range 2 {
		if r := j.Endpoint(i).tagged.ringOf(1 - i); r.number != 0 || r.inPair != 40 {
			t.Errorf("%d messages to rank %d were in the ring, and %d in pair cells: want 0 and 40", r.number, i, r.inPair)
		}
	}
}

// Receives that were started before get their messages first, also where the next one finds
// them in the ring.
func TestAReceiveThatIsStartedTakesWhatHasArrivedBehindThoseStartedBefore(t *testing.T) {
	j := New(2)
	send := func(tag int, text string) {
		t.Helper()
		if err := j.Endpoint(0).Send(t.Context(), 1, transport.Match{Context: 1, Tag: tag}, "bytes", []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	type started struct {
		transport.Request
		into [1]byte
	}
	start := func(tag int, typeName string) *started {
		r := new(started)
		j.Endpoint(1).StartRecv(t.Context(), &r.Request, 0, transport.Match{Context: 1, Tag: tag}, typeName, r.into[:])
		return r
	}
	got := func(what string, r *started, want string) {
		t.Helper()
		if !r.Done() || r.Err != nil || string(r.into[:]) != want || r.Info.Size != 1 {
			t.Errorf("%s: done %v, %q, %+v, %v: want %q", what, r.Done(), r.into, r.Info, r.Err, want)
		}
	}
	first, other, wrong := start(1, "bytes"), start(2, "bytes"), start(3, "int")
	send(2, "b")
	send(3, "c")
	send(1, "a")
	send(3, "d")
	send(9, "e")
	send(1, "f")
	last := start(3, "bytes")
	if !errors.As(wrong.Err, new(*transport.TypeError)) {
		t.Errorf("a receive of another type: %v", wrong.Err)
	}
	got("the receive that was started last", last, "c") // the failed one has left it
	got("a receive of another tag", other, "b")
	got("the receive that was started first", first, "a")
	got("the next receive", start(3, "bytes"), "d")
	got("a receive of what lies behind another message", start(1, "bytes"), "f")
	got("a receive of a message that was passed over", start(9, "bytes"), "e")
	if held := j.Endpoint(1).Held().Tagged; held != 0 {
		t.Errorf("%d bytes are held after all messages were received", held)
	}
}

// A send of up to 64 KiB is done without its receiver, and its message stays in the order of
// those before it, also of those that are in their sender's memory. Its memory is the sender's
// again.
func TestAWaitForASendMakesItEagerInItsPlace(t *testing.T) {
	j := New(2)
	from, to := j.Endpoint(0), j.Endpoint(1)
	m := transport.Match{Context: 1, Tag: 2}
	long, short := make([]byte, match.EagerMax+1), make([]byte, match.EagerMax)
	long[0], short[0] = 1, 2
	var first, second, third transport.Request
	from.StartSend(t.Context(), &first, 1, m, "bytes", long)
	from.StartSend(t.Context(), &second, 1, m, "bytes", short)
	from.StartSend(t.Context(), &third, 1, m, "bytes", []byte{3})
	from.Wait(&second)
	short[0] = 9
	if want := len(short) + 1 + 3*transport.MessageCost; to.Held().Tagged != want {
		t.Errorf("%d bytes are held: want %d", to.Held().Tagged, want)
	}
	into := make([]byte, len(long))
	for i, size := range []int{len(long), len(short), 1} {
		if info, err := to.Recv(t.Context(), 0, m, "bytes", into); err != nil || info.Size != size || into[0] != byte(i+1) {
			t.Errorf("message %d is %+v, %d …, %v: want %d bytes, %d …", i, info, into[0], err, size, i+1)
		}
	}
	from.Wait(&first)
	if to.Held().Tagged != 0 || first.Err != nil || second.Err != nil || third.Err != nil {
		t.Errorf("%d bytes are held, and the sends fail with %v, %v, %v", to.Held().Tagged, first.Err, second.Err, third.Err)
	}
}

// What a ring and the queue hold of one sender costs no more than the credits, and all of
// it is counted.
func TestRingHasTheCreditsOfItsSender(t *testing.T) {
	j := New(2)
	q := &j.Endpoint(1).tagged
	m := transport.Match{Context: 1, Tag: 2}
	const most = transport.TaggedMax / (8 + transport.MessageCost)
	for i := range most {
		if err := j.Endpoint(0).Send(context.Background(), 1, m, "uint8", make([]byte, 8)); err != nil {
			t.Fatal(i, err)
		}
	}
	if got, want := j.Endpoint(1).Held().Tagged, most*(8+transport.MessageCost); got != want {
		t.Errorf("%d bytes are held: want %d", got, want)
	}
	if q.send(0, m, "uint8", make([]byte, 8)) {
		t.Error("a message beyond the credits is in the ring")
	}
	into := make([]byte, 8)
	if _, err := j.Endpoint(1).Recv(context.Background(), 0, m, "uint8", into); err != nil {
		t.Fatal(err)
	}
	if !q.send(0, m, "uint8", into) {
		t.Error("a message is not in the ring although there are credits")
	}
}

// The ranks from which the first ringsMax rings come have cells. The others send through
// the queue.
func TestRingsToOneRankHaveABound(t *testing.T) {
	const n = 2 * ringsMax
	j := New(n)
	m := transport.Match{Context: 1, Tag: 2}
	for round := range 2 {
		for rank := 1; rank < n; rank++ {
			if err := j.Endpoint(rank).Send(context.Background(), 0, m, "uint8", []byte{byte(rank), byte(round)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := len(j.Endpoint(0).tagged.rings.list()); got != ringsMax {
		t.Errorf("%d rings have cells: want %d", got, ringsMax)
	}
	next := make(map[int]byte)
	for range 2 * (n - 1) {
		into := make([]byte, 2)
		info, err := j.Endpoint(0).Recv(context.Background(), transport.Any, m, "uint8", into)
		if want := fmt.Sprint([]byte{byte(info.From), next[info.From]}); err != nil || fmt.Sprint(into) != want {
			t.Fatalf("%+v, %v: got %v, want %s", info, err, into, want)
		}
		next[info.From]++
	}
}

// A message that is done leaves its memory to the next one, with another number. What
// looked at the first one ends neither.
func TestTheEndOfOneMessageIsNotThatOfTheNextInItsMemory(t *testing.T) {
	job := New(2)
	e, peer := job.Endpoint(0), job.Endpoint(1)
	m := transport.Match{Context: 1, Tag: 2}
	into := make([]byte, 2*ringMax) // so long that the receive is posted
	var first, second transport.Request
	e.StartRecv(t.Context(), &first, 1, m, "bytes", into)
	started := inProgress{first.State.(*message), first.State.(*message).number}
	if err := peer.Send(t.Context(), 0, m, "bytes", make([]byte, len(into))); err != nil {
		t.Fatal(err)
	}
	e.Wait(&first)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	e.StartRecv(over, &second, 1, transport.Match{Context: 1, Tag: 3}, "bytes", into)
	if next := second.State; next != any(started.message) {
		t.Fatalf("the second message has other memory, %v", next)
	}
	e.endHopeless([]inProgress{started})
	if second.Done() {
		t.Error("the second message was ended in place of the first")
	}
	e.Progress()
	if !second.Done() {
		t.Error("Progress has not ended a message whose context has ended")
	}
}
