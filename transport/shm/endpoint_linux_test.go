package shm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/chorale-go/chorale/transport"
)

// sig is the signature of most tests.
var sig = transport.Signature{Context: 1, Sequence: 1, Call: "test"}

// job makes a job of n ranks in this process that ends with the test.
func job(t testing.TB, n int) []*Endpoint {
	t.Helper()
	return crew(t, n, Config{})
}

// crew makes one whose endpoints are like cfg.
func crew(t testing.TB, n int, cfg Config) []*Endpoint {
	t.Helper()
	ends, err := loopback(n, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, e := range ends {
			e.Close()
		}
	})
	return ends
}

// each runs a part on every rank at once and fails the test at the first error.
func each(t testing.TB, ends []*Endpoint, part func(e *Endpoint) error) {
	t.Helper()
	errs := make([]error, len(ends))
	var ranks sync.WaitGroup
	for i, e := range ends {
		ranks.Go(func() { errs[i] = part(e) })
	}
	ranks.Wait()
	for rank, err := range errs {
		if err != nil {
			t.Fatalf("rank %d: %v", rank, err)
		}
	}
}

func send(e transport.Endpoint, s transport.Signature, to int, data []byte) error {
	return e.Exchange(context.Background(), transport.Step{Signature: s, Sends: []transport.Send{{To: []int{to}, Data: data}}})
}

func receive(ctx context.Context, e transport.Endpoint, s transport.Signature, from int, into []byte) error {
	return e.Exchange(ctx, transport.Step{Signature: s, Recvs: []transport.Recv{{From: from, Into: into}}})
}

func swap(ctx context.Context, e transport.Endpoint, s transport.Signature, peer int) error {
	return e.Exchange(ctx, transport.Step{
		Signature: s,
		Sends:     []transport.Send{{To: []int{peer}, Data: make([]byte, 8)}},
		Recvs:     []transport.Recv{{From: peer, Into: make([]byte, 8)}},
	})
}

// checkPeer tests that err says of a peer what became of it, and holds a text.
func checkPeer(t *testing.T, err error, peer int, what error, text string) {
	t.Helper()
	var e *transport.PeerError
	if !errors.As(err, &e) || e.Peer != peer || !errors.Is(err, what) || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v, want %v", err, &transport.PeerError{Peer: peer, Err: what, Reason: text})
	}
}

// hold takes away the endpoint's boxes, but for those that are for messages that
// were asked for: whatever does not fit into a slot is lent.
func hold(e *Endpoint) {
	e.lock()
	defer e.mu.Unlock()
	nobody := &link{e: e}
	nobody.out = e.seg.lane(e.cfg.Rank, e.cfg.Rank)
	for i := range e.boxes[:len(e.boxes)-boxesKept] {
		e.boxes[i].readers = []reader{{nobody, 1}}
	}
}

// underRace is set where the race detector makes every byte dear.
var underRace bool

// No transport has room for this in its buffers.
func TestEightRanksSwap64MiBAtOnce(t *testing.T) {
	const n = 8
	size := 64 << 20
	if testing.Short() || underRace {
		size = 4 << 20
	}
	data := bytes.Repeat([]byte("All ranks send first. "), size/22+1)[:size]
	each(t, job(t, n), func(e *Endpoint) error {
		into := make([]byte, size)
		peer := e.Rank() ^ 1
		err := e.Exchange(context.Background(), transport.Step{
			Signature: sig,
			Sends:     []transport.Send{{To: []int{peer}, Data: data}},
			Recvs:     []transport.Recv{{From: peer, Into: into}},
		})
		if err == nil && !bytes.Equal(into, data) {
			err = errors.New("what arrived is not what was sent")
		}
		return err
	})
}

func TestTheSteadyStateAllocatesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for _, size := range []int{8, 100_000} {
		ends := job(t, 2)
		exchange := func(e *Endpoint) func() {
			step := transport.Step{
				Signature: sig,
				Sends:     []transport.Send{{To: []int{1 - e.Rank()}, Data: make([]byte, size)}},
				Recvs: []transport.Recv{{
					From: 1 - e.Rank(), Into: make([]byte, size), Held: make([]byte, size), Elem: 8,
					Combine: func(into, held, incoming []byte) { copy(into, incoming) },
				}},
			}
			return func() {
				if err := e.Exchange(ctx, step); err != nil {
					t.Error(err)
				}
			}
		}
		const rounds = 200
		done := make(chan struct{})
		go func() {
			defer close(done)
			other := exchange(ends[1])
			for range rounds + 1 {
				other()
			}
		}()
		if n := testing.AllocsPerRun(rounds, exchange(ends[0])); n >= 1 {
			t.Errorf("an exchange of %d bytes makes %v allocations", size, n)
		}
		<-done
	}
}

func TestARankThatIsLostFailsWhoWaitsForIt(t *testing.T) {
	ends := job(t, 3)
	waiting := make(chan error)
	go func() { waiting <- receive(context.Background(), ends[0], sig, 1, nil) }()
	ends[0].Lost(2, "not of interest")
	ends[0].Lost(1, "killed by signal 9")
	checkPeer(t, <-waiting, 1, transport.ErrLost, "killed by signal 9")

	ends[2].Lost(1, "killed by signal 9")
	checkPeer(t, send(ends[2], sig, 1, nil), 1, transport.ErrLost, "killed by signal 9")
	for _, rank := range []int{-1, 2, 3} {
		ends[2].Lost(rank, "no such rank") // harms nobody
	}
}

func TestARankThatGivesUpInTheMiddleOfAMessageSaysWhy(t *testing.T) {
	ends := job(t, 2)
	ctx, cancel := context.WithCancelCause(context.Background())
	failed := make(chan error)
	large := make([]byte, 64<<20)
	go func() {
		failed <- ends[0].Exchange(ctx, transport.Step{
			Signature: sig,
			Sends:     []transport.Send{{To: []int{1}, Data: large}},
			Recvs:     []transport.Recv{{From: 1, Into: make([]byte, 1)}},
		})
	}()
	if err := send(ends[1], sig, 0, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	cancel(errors.New("enough"))
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	checkPeer(t, receive(context.Background(), ends[1], sig, 0, make([]byte, len(large))), 0, transport.ErrAborted, "enough")
}

// until returns when cond holds for the endpoint.
func until(e *Endpoint, cond func() bool) {
	for {
		e.lock()
		holds := cond()
		e.mu.Unlock()
		if holds {
			return
		}
		time.Sleep(100 * time.Microsecond)
	}
}

func TestALargeMessageDoesNotHoldBackAnotherContext(t *testing.T) {
	ends := job(t, 2)
	first, second := sig, sig
	second.Context++
	large := bytes.Repeat([]byte("large"), 4<<20)
	sent := make(chan error)
	go func() { sent <- send(ends[0], first, 1, large) }()
	until(ends[0], func() bool { return ends[0].links[1].tail > 0 })
	go func() { sent <- send(ends[0], second, 1, []byte("small")) }()

	into := make([]byte, 5)
	if err := receive(context.Background(), ends[1], second, 0, into); err != nil || string(into) != "small" {
		t.Fatalf("got %q, %v", into, err)
	}
	into = make([]byte, len(large))
	if err := receive(context.Background(), ends[1], first, 0, into); err != nil || !bytes.Equal(into, large) {
		t.Fatalf("the large message did not arrive: %v", err)
	}
	if err := errors.Join(<-sent, <-sent); err != nil {
		t.Fatal(err)
	}
}

// putAside has rank 0 send messages of one context and then one of another,
// which rank 1 takes first.
func putAside(t *testing.T, messages ...string) []*Endpoint {
	t.Helper()
	ends := job(t, 2)
	for _, m := range messages {
		if err := send(ends[0], sig, 1, []byte(m)); err != nil {
			t.Fatal(err)
		}
	}
	other := sig
	other.Context++
	sent := make(chan error)
	go func() { sent <- send(ends[0], other, 1, nil) }()
	if err := errors.Join(receive(context.Background(), ends[1], other, 0, nil), <-sent); err != nil {
		t.Fatal(err)
	}
	return ends
}

func TestMessagesPutAsideKeepTheirOrder(t *testing.T) {
	ends := putAside(t, "do", "re", "mi")
	for _, want := range []string{"do", "re"} {
		into := make([]byte, 2)
		if err := receive(context.Background(), ends[1], sig, 0, into); err != nil || string(into) != want {
			t.Errorf("got %q, %v, want %q", into, err, want)
		}
	}
	// One message put aside is left; the next comes from the lane.
	if err := send(ends[0], sig, 1, []byte("fa")); err != nil {
		t.Fatal(err)
	}
	held, into := []byte("sol la"), make([]byte, 6)
	join := func(into, held, incoming []byte) {
		for i := range into {
			into[i] = held[i] ^ incoming[i]
		}
	}
	err := ends[1].Exchange(context.Background(), transport.Step{Signature: sig, Recvs: []transport.Recv{
		{From: 0, Into: into[:2], Held: held[:2], Combine: join, Elem: 1},
		{From: 0, Into: into[2:4], Held: held[2:4], Combine: join, Elem: 1, InTurn: true},
	}})
	want := make([]byte, 6)
	join(want[:4], held[:4], []byte("mifa"))
	if err != nil || !bytes.Equal(into, want) {
		t.Errorf("got %q, %v, want %q", into, err, want)
	}
}

func TestAMessagePutAsideIsComparedWithItsReceive(t *testing.T) {
	another := sig
	another.Call = "another"
	err := receive(context.Background(), putAside(t, "do")[1], another, 0, make([]byte, 2))
	want := transport.MismatchError{Rank: 1, Peer: 0, Mine: another, Theirs: sig}
	if got := new(transport.MismatchError); !errors.As(err, &got) || *got != want {
		t.Errorf("got %v, want %v", err, &want)
	}
	err = receive(context.Background(), putAside(t, "do")[1], sig, 0, make([]byte, 3))
	if got, want := new(transport.SizeError), (transport.SizeError{Peer: 0, Got: 2, Want: 3}); !errors.As(err, &got) || *got != want {
		t.Errorf("got %v, want %v", err, &want)
	}
}

func TestALeftOverOfAnEarlierCallIsAMismatch(t *testing.T) {
	ends := job(t, 2)
	late := sig
	late.Sequence = 3
	if err := send(ends[0], sig, 1, nil); err != nil {
		t.Fatal(err)
	}
	// Rank 1 expects nothing from rank 0 in the later call, only to be rid
	// of a message that rank 0 never takes.
	var err error
	for err == nil {
		err = send(ends[1], late, 0, make([]byte, 1<<20))
	}
	want := transport.MismatchError{Rank: 1, Peer: 0, Mine: late, Theirs: sig}
	if got := new(transport.MismatchError); !errors.As(err, &got) || *got != want {
		t.Errorf("got %v, want %v", err, &want)
	}
	// The other end is told the same story.
	err = receive(context.Background(), ends[0], sig, 1, nil)
	for err == nil {
		err = receive(context.Background(), ends[0], sig, 1, nil)
	}
	want.Rank, want.Peer, want.Mine, want.Theirs = 0, 1, sig, late
	if got := new(transport.MismatchError); !errors.As(err, &got) || *got != want {
		t.Errorf("got %v, want %v", err, &want)
	}
}

func TestARankThatLeavesWithAMessageUnreadIsTold(t *testing.T) {
	mine, theirs := transport.Signature{Sequence: 1, Call: "mine"}, transport.Signature{Sequence: 2, Call: "theirs"}
	ends := job(t, 2)
	each(t, ends, func(e *Endpoint) error { return swap(context.Background(), e, mine, 1-e.Rank()) })
	for _, e := range ends {
		if err := e.Unread(); err != nil {
			t.Errorf("rank %d: got %v", e.Rank(), err)
		}
	}
	if err := send(ends[1], theirs, 0, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	want := transport.UnreadError{Rank: 0, Peer: 1, Mine: mine, Theirs: theirs}
	for range 2 {
		if got := new(transport.UnreadError); !errors.As(ends[0].Unread(), &got) || *got != want {
			t.Errorf("got %v, want %v", got, &want)
		}
	}
	ends[0].Close()
	if err := ends[0].Unread(); err != nil {
		t.Errorf("after Close: got %v", err)
	}
	checkPeer(t, swap(context.Background(), ends[1], theirs, 0), 0, transport.ErrLeft, `its last call was call 1, "mine"`)
}

func TestAContextThatIsReleasedLeavesNothing(t *testing.T) {
	ends := putAside(t, "do", "re")
	ends[1].Release(sig.Context + 1) // another
	if n := len(ends[1].links[0].aside); n != 2 {
		t.Errorf("%d messages are aside, want 2", n)
	}
	ends[1].Release(sig.Context)
	if n := len(ends[1].links[0].aside); n != 0 {
		t.Errorf("%d messages are aside, want none", n)
	}
}

func TestTwoStepsOfOneContextAtATimeAreAnError(t *testing.T) {
	e := job(t, 2)[0]
	errs := make(chan error)
	for range 2 {
		go func() { errs <- swap(context.Background(), e, sig, 1) }()
	}
	for range 2 {
		if err := <-errs; err != errTwoSteps {
			t.Errorf("got %v, want %v", err, errTwoSteps)
		}
	}
}

func TestCallNumbersMayWrapAround(t *testing.T) {
	for _, c := range []struct{ a, b uint32 }{{0, 1}, {1<<32 - 1, 0}, {1<<32 - 5, 7}, {1<<31 - 1, 1 << 31}} {
		if !before(c.a, c.b) || before(c.b, c.a) || before(c.a, c.a) {
			t.Errorf("%d does not come before %d", c.a, c.b)
		}
	}
}

// Elements that lie across the ends of boxes arrive whole, and where they would be
// aligned in an array of their own.
func TestPiecesAreAlignedAsTheirElements(t *testing.T) {
	for _, elem := range []int{8, 24, 40_000, 300_008} {
		for _, call := range []string{"read", "asked for"} {
			ends := crew(t, 2, Config{Apart: call == "asked for"})
			hold(ends[0])
			size := elem * (3<<20/elem + 1)
			data := make([]byte, size)
			for i := range data {
				data[i] = byte(i % 251)
			}
			s := transport.Signature{Call: call}
			go send(ends[0], s, 1, data)
			into, misaligned := make([]byte, size), 0
			err := ends[1].Exchange(context.Background(), transport.Step{Signature: s, Recvs: []transport.Recv{{
				From: 0, Into: into, Held: into, Elem: elem,
				Combine: func(into, held, incoming []byte) {
					if uintptr(unsafe.Pointer(&incoming[0]))%8 != 0 || len(incoming)%elem != 0 {
						misaligned++
					}
					copy(into, incoming)
				},
			}}})
			if err != nil || misaligned > 0 || !bytes.Equal(into, data) {
				t.Errorf("elements of %d bytes, %s: %d pieces are misaligned, error %v", elem, call, misaligned, err)
			}
		}
	}
}

func TestACombineThatPanicsFailsTheEndpoint(t *testing.T) {
	ends := job(t, 2)
	go send(ends[0], sig, 1, make([]byte, 1))
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is gone")
			}
		}()
		into := make([]byte, 1)
		ends[1].Exchange(context.Background(), transport.Step{Signature: sig, Recvs: []transport.Recv{
			{From: 0, Into: into, Held: into, Elem: 1, Combine: func(_, _, _ []byte) { panic("no such sum") }},
		}})
	}()
	if err := swap(context.Background(), ends[1], sig, 0); !errors.Is(err, errPanicked) {
		t.Errorf("got %v, want %v", err, errPanicked)
	}
	checkPeer(t, swap(context.Background(), ends[0], sig, 1), 1, transport.ErrAborted, "panicked")
}

func TestManyContextsThatEndBetweenExchangesLeaveNoTrace(t *testing.T) {
	ends := job(t, 2)
	each(t, ends, func(e *Endpoint) error {
		for range 100 {
			ctx, cancel := context.WithCancel(context.Background())
			err := swap(ctx, e, sig, 1-e.Rank())
			defer cancel() // not before the next exchange
			if err != nil {
				return err
			}
		}
		if n := len(e.watches); n > watchesMax {
			return fmt.Errorf("%d contexts are watched", n)
		}
		return nil
	})
}

func TestAConfigIsChecked(t *testing.T) {
	memory, err := NewMemory(2, [16]byte{1})
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	other, err := NewMemory(3, [16]byte{1})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for _, c := range []Config{
		{}, {Rank: 1, Size: 1}, {Rank: -1, Size: 2}, {Size: 2},
		{Size: 2, Memory: memory},
		{Size: 3, Memory: memory, Token: [16]byte{1}},
		{Size: 2, Memory: other, Token: [16]byte{1}},
	} {
		if e, err := New(c); err == nil {
			e.Close()
			t.Errorf("New(%+v) makes an endpoint", c)
		}
	}
	c := Config{Size: 2, Memory: memory, Token: [16]byte{1}}
	e, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, err := New(c); err == nil || err.Error() != "shm: rank 0 has joined already" {
		t.Errorf("a second rank 0: %v", err)
	}
}

func TestTheMemoryOfAJobIsBounded(t *testing.T) {
	for size := 1; size <= ranksMost; size++ {
		l := layoutOf(size)
		lanes := size * size * (1 + l.depth) * lineLen
		if boxes := size * l.boxes * l.boxLen; boxes > roomMost || l.boxLen < boxMin || l.boxes < 4*boxesKept {
			t.Fatalf("%d ranks have %d boxes of %d bytes each", size, l.boxes, l.boxLen)
		}
		if lanes > 192<<20 || l.depth < 2 || l.depth&(l.depth-1) != 0 {
			t.Fatalf("%d ranks have lanes of %d slots, %d bytes altogether", size, l.depth, lanes)
		}
	}
	for size, want := range map[int]int64{2: 4, 8: 16, 64: 69} {
		if n, err := MemoryLen(size); err != nil || n>>20 != want {
			t.Errorf("%d ranks take %d bytes, %v: want %d MiB", size, n, err, want)
		}
	}
	for _, size := range []int{-1, 0, ranksMost + 1} {
		if _, err := NewMemory(size, [16]byte{}); err == nil {
			t.Errorf("%d ranks have memory", size)
		}
	}
}

// A message that is lent needs no box, only what is kept for those that ask.
func TestMessagesOfManyContextsThatAreLentHoldUpNone(t *testing.T) {
	const contexts, size = 3 * wantsMost, 100_000
	for _, apart := range []bool{false, true} {
		ends := crew(t, 2, Config{Apart: apart})
		hold(ends[0])
		data := bytes.Repeat([]byte("lent"), size/4)
		sent := make(chan error)
		for c := range contexts {
			s := sig
			s.Context = uint32(c)
			go func() { sent <- send(ends[0], s, 1, data) }()
		}
		until(ends[0], func() bool { return len(ends[0].ops) == contexts })
		for c := contexts - 1; c >= 0; c-- {
			s := sig
			s.Context = uint32(c)
			into := make([]byte, size)
			if err := receive(context.Background(), ends[1], s, 0, into); err != nil || !bytes.Equal(into, data) {
				t.Fatalf("apart %v, context %d: %v", apart, c, err)
			}
		}
		for range contexts {
			if err := <-sent; err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Rank 2 reads nothing of the multicast before rank 1 has all of it.
func TestAReaderThatIsLateHoldsUpNoOther(t *testing.T) {
	data := bytes.Repeat([]byte("multicast"), 1<<20)
	for _, apart := range []bool{false, true} {
		each(t, crew(t, 3, Config{Apart: apart}), func(e *Endpoint) error {
			second := sig
			second.Sequence++
			into := make([]byte, len(data))
			switch e.Rank() {
			case 0:
				return e.Exchange(context.Background(), transport.Step{Signature: sig, Sends: []transport.Send{{To: []int{1, 2}, Data: data}}})
			case 1:
				err := receive(context.Background(), e, sig, 0, into)
				return errors.Join(err, send(e, sig, 2, nil))
			}
			err := receive(context.Background(), e, sig, 1, nil)
			err = errors.Join(err, receive(context.Background(), e, sig, 0, into))
			if err == nil && !bytes.Equal(into, data) {
				err = errors.New("another message arrived")
			}
			return err
		})
	}
}

// Nothing wakes a rank here that sleeps but what it sleeps for.
func TestNoRankSleepsThroughWhatItWaitsFor(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 50
	}
	for _, n := range []int{2, 3, 7} {
		for _, apart := range []bool{false, true} {
			ends := crew(t, n, Config{Apart: apart})
			for _, e := range ends {
				e.patience = time.Hour
			}
			each(t, ends, func(e *Endpoint) error {
				for round := range rounds {
					if err := traffic(e, round); err != nil {
						return fmt.Errorf("%d ranks, round %d: %w", n, round, err)
					}
				}
				return nil
			})
		}
	}
}

// traffic does a step that all ranks draw from the same seed: several messages
// per pair, of the sizes at which messages change their way, some to several
// ranks, some receives in turn.
func traffic(e *Endpoint, round int) error {
	sizes := []int{0, 1, 8, inlineMax, inlineMax + 1, 5000, 64 << 10, 64<<10 + 1, 300_000}
	random := rand.New(rand.NewPCG(1, uint64(round)))
	step := transport.Step{Signature: transport.Signature{Context: 1, Sequence: uint32(round), Call: "traffic"}}
	n := e.Size()
	const most = 8
	for from := range n {
		for i := range random.IntN(most) {
			send := transport.Send{Data: bytes.Repeat([]byte{byte(round + 7*from + i)}, sizes[random.IntN(len(sizes))])}
			for to := range n {
				sent, inTurn := random.IntN(2) == 0, random.IntN(4) == 0
				if to == from || !sent {
					continue
				}
				send.To = append(send.To, to)
				if to == e.Rank() {
					step.Recvs = append(step.Recvs, transport.Recv{From: from, Into: make([]byte, len(send.Data)), InTurn: inTurn})
				}
			}
			if from == e.Rank() {
				step.Sends = append(step.Sends, send)
			}
		}
	}
	if err := e.Exchange(context.Background(), step); err != nil {
		return err
	}
	// Each sender numbers its messages; those for this rank are in order.
	seen := map[int]int{}
	for _, r := range step.Recvs {
		if len(r.Into) == 0 {
			continue
		}
		k := int(r.Into[0]-byte(round+7*r.From)) & 0xff
		if k < seen[r.From] || k >= most || bytes.Count(r.Into, r.Into[:1]) != len(r.Into) {
			return fmt.Errorf("message %d came from rank %d after message %d", k, r.From, seen[r.From])
		}
		seen[r.From] = k
	}
	return nil
}
