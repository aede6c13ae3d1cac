package shm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
