package shm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/cluster"
)

// partlyUnexpected has rank 0 move the beginning of a message of rank 1 to the
// unexpected queue. The rest has arrived afterwards.
func partlyUnexpected(t *testing.T) (ends []*Endpoint, message []byte) {
	t.Helper()
	ends = crew(t, 2, Config{NoCMA: true})
	ends[0].wait.Oversubscribed, ends[1].wait.Oversubscribed = true, true // so that staging buffers are full
	message = bytes.Repeat([]byte("partly"), 12*ends[1].seg.stagingLen/6)
	other := sig
	other.Context++
	sent := make(chan error)
	go func() { sent <- send(ends[1], sig, 0, message) }()
	until(ends[1], func() bool { return ends[1].links[0].out.written == pipelineDepth })
	if err := send(ends[1], other, 0, nil); err != nil {
		t.Fatal(err)
	}
	ends[1].engine.Lock() // the rest is to come later
	err := receive(context.Background(), ends[0], other, 1, nil)
	ends[1].unlock()
	if err != nil {
		t.Fatal(err)
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	if m := ends[0].links[1].in.queue.First(); m == nil || m.Complete() {
		t.Fatal("no message is in the unexpected queue in part")
	}
	return ends, message
}

func TestAMessageThatHasArrivedIsNotLostWithItsSender(t *testing.T) {
	ends, message := partlyUnexpected(t)
	ends[1].Close()
	ends[0].engine.Lock()
	ends[0].polls.terminated = true // as after a frame to some rank that has gone
	ends[0].unlock()
	into := make([]byte, len(message))
	if err := receive(context.Background(), ends[0], sig, 1, into); err != nil || !bytes.Equal(into, message) {
		t.Errorf("another message arrived, or %v", err)
	}
}

func TestAMessageBehindAnUnexpectedOneIsReceived(t *testing.T) {
	ends, message := partlyUnexpected(t)
	if err := send(ends[1], sig, 0, []byte("second")); err != nil {
		t.Fatal(err)
	}
	ends[0].wait.stallTimeout = time.Hour // else it polls all links again
	ctx, cancel := context.WithTimeout(context.Background(), hangs)
	defer cancel()
	first, second := make([]byte, len(message)), make([]byte, 6)
	err := ends[0].Exchange(ctx, transport.Step{Signature: sig, Recvs: []transport.Recv{{From: 1, Into: first}, {From: 1, Into: second}}})
	if err != nil || !bytes.Equal(first, message) || string(second) != "second" {
		t.Errorf("other messages arrived, the second as %q, or %v", second, err)
	}
}

// Rank 0 sends 16 MiB in one context while rank 1 receives only messages of another. The
// first context waits when its bound is reached, the other goes on.
func TestTheUnexpectedQueueIsBoundedByItsBytesAndARingOfFrames(t *testing.T) {
	const rounds = 1200
	for _, size := range []int{200, 30 << 10, 100 << 10, 1 << 20} {
		for _, noCMA := range []bool{false, true} {
			ends := crew(t, 2, Config{NoCMA: noCMA})
			most := 0
			other := sig
			other.Context++
			each(t, ends, func(e *Endpoint) error {
				sent := make(chan error, 1)
				if e.Rank() == 0 {
					go func() { sent <- sendMany(e, size) }()
				}
				for range rounds {
					if err := cluster.Swap(t.Context(), e, other, 1-e.Rank()); err != nil {
						return err
					}
					if e.Rank() == 1 {
						most = max(most, e.Held().Unexpected)
					}
				}
				if e.Rank() == 0 {
					return <-sent
				}
				return receiveMany(t.Context(), e, size)
			})
			if limit := transport.UnexpectedMax + 16*ends[0].seg.stagingLen; most > limit {
				t.Errorf("of messages of %d bytes, %d are held, want %d at most", size, most, limit)
			}
			if n := ends[1].Held().Unexpected; n != 0 || ends[1].links[0].in.admits.Load() != 0 {
				t.Errorf("everything is received, and rank 1 holds %d bytes", n)
			}
		}
	}
}

func sendMany(e *Endpoint, size int) error {
	for i := range min(16<<20/size, 40_000) {
		if err := send(e, sig, 1, bytes.Repeat([]byte{byte(i)}, size)); err != nil {
			return err
		}
	}
	return nil
}

func receiveMany(ctx context.Context, e *Endpoint, size int) error {
	into := make([]byte, size)
	for i := range min(16<<20/size, 40_000) {
		err := receive(ctx, e, sig, 0, into)
		if err == nil && bytes.Count(into, []byte{byte(i)}) != size {
			err = errors.New("the message arrived changed")
		}
		if err != nil {
			return fmt.Errorf("message %d of %d bytes: %w", i, size, err)
		}
	}
	return nil
}

// More contexts wait than a receiver can name. The sender sends in the one that is named
// last.
func TestMoreContextsMayWaitThanAReceiverCanAdmit(t *testing.T) {
	const contexts = 2*admittedMax + 3
	in := func(c int) transport.Signature {
		s := sig
		s.Context = uint32(100 + c)
		return s
	}
	ends := crew(t, 2, Config{NoCMA: true})
	sent := make(chan error, 1)
	go func() { sent <- send(ends[0], sig, 1, make([]byte, 2*transport.UnexpectedMax)) }()
	received := make(chan error, contexts)
	for c := range contexts {
		go func() { received <- receive(t.Context(), ends[1], in(c), 0, nil) }()
	}
	until(ends[1], func() bool { return ends[1].links[0].in.held > 0 && len(ends[1].engine.Ops()) == contexts })
	for c := contexts - 1; c >= 0; c-- {
		if err := send(ends[0], in(c), 1, nil); err != nil {
			t.Fatal(err)
		}
	}
	for range contexts {
		if err := <-received; err != nil {
			t.Error(err)
		}
	}
	if err := receive(t.Context(), ends[1], sig, 0, make([]byte, 2*transport.UnexpectedMax)); err != nil {
		t.Error(err)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
}

// The first context is held all the time. Of another one, whose sender always sees that it
// is admitted, more bytes pass the unexpected queue than a peer can ever have there.
func TestAContextThatIsHeldForLongEndsNoOther(t *testing.T) {
	t.Parallel() // it waits most of its time
	const size = 60 << 10
	const rounds = 5 * excessMax / 4 / size
	ends := crew(t, 2, Config{NoCMA: true})
	other := sig
	other.Context++
	each(t, ends, func(e *Endpoint) error {
		ctx, l := t.Context(), &e.links[1-e.Rank()]
		tag := transport.Match{Context: other.Context}
		if e.Rank() == 0 {
			sent := make(chan error, 1)
			go func() { sent <- sendMany(e, 200) }()
			if err := receive(ctx, e, other, 1, nil); err != nil { // the first context is held
				return err
			}
			for range rounds {
				if err := errors.Join(send(e, other, 1, make([]byte, size)), e.Send(ctx, 1, tag, "", nil)); err != nil {
					return err
				}
			}
			return <-sent
		}
		for held := false; !held; {
			if _, _, err := e.TryRecv(ctx, 0, tag, "", nil); err != nil {
				return err
			}
			e.engine.Lock()
			held = l.in.held > 0
			e.unlock()
		}
		if err := send(e, other, 0, nil); err != nil {
			return err
		}
		for range rounds {
			for found := false; !found; {
				e.engine.Lock()
				l.in.lift()
				l.noteWakeup(took)
				e.unlock()
				var err error
				if _, found, err = e.TryRecv(ctx, 0, tag, "", nil); err != nil {
					return err
				}
			}
			if err := receive(ctx, e, other, 0, make([]byte, size)); err != nil {
				return err
			}
		}
		return receiveMany(ctx, e, 200)
	})
}
