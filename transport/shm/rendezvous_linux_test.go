package shm

import (
	"bytes"
	"context"
	"errors"
	"os"
	"testing"
	"unsafe"

	"github.com/chorale-go/chorale/internal/testenv"
	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
)

// Rank 0 can read the memory of rank 1, and so sends by rendezvous, but rank 1 cannot
// read that of rank 0.
func TestMoreMessagesGoByRendezvousThanAReceiverCanRequest(t *testing.T) {
	ends := job(t, 2)
	ends[0].wait.Oversubscribed = false
	ends[1].cfg.NoCMA = true
	ctx, cancel := context.WithTimeout(context.Background(), hangs)
	defer cancel()
	each(t, ends, func(e *Endpoint) error {
		step := transport.Step{Signature: sig}
		into := make([][]byte, rendezvousMax+1)
		for i := range into {
			data := bytes.Repeat([]byte{byte(i)}, rendezvousMin)
			if e.Rank() == 0 {
				step.Sends = append(step.Sends, transport.Send{To: []int{1}, Data: data})
				continue
			}
			into[i] = data
			clear(data)
			step.Recvs = append(step.Recvs, transport.Recv{From: 0, Into: data})
		}
		err := e.Exchange(ctx, step)
		for i, p := range into {
			if err == nil && e.Rank() == 1 && bytes.Count(p, []byte{byte(i)}) != rendezvousMin {
				err = errors.New("another message arrived")
			}
		}
		return err
	})
}

// The second time, rank 2 cannot read the memory of rank 0, and makes a pull request.
func TestARendezvousWithSeveralRanksReachesAllOfThem(t *testing.T) {
	for _, without := range []int{0, 2} { // 2 cannot read the memory of 0
		ends := job(t, 4)
		needCMA(t, &ends[0].links[1])
		if without > 0 {
			ends[without].cfg.NoCMA = true
		}
		want := bytes.Repeat([]byte("several."), rendezvousManyMin/4)
		each(t, ends, func(e *Endpoint) error {
			step := transport.Step{Signature: sig}
			if e.Rank() == 0 {
				step.Sends = []transport.Send{{To: []int{1, 2, 3}, Data: want}}
				if err := e.Exchange(t.Context(), step); err != nil {
					return err
				}
				if e.out.promoter.pages == [256]hugePage{} {
					return errors.New("nothing went by rendezvous")
				}
				return nil
			}
			got := make([]byte, len(want))
			step.Recvs = []transport.Recv{{From: 0, Into: got}}
			err := e.Exchange(t.Context(), step)
			if err == nil && !bytes.Equal(got, want) {
				err = errors.New("another message arrived")
			}
			return err
		})
	}
}

func TestTheMemoryOfARankThatIsJustJoiningIsTriedAgain(t *testing.T) {
	ends := job(t, 2)
	l := &ends[0].links[1]
	value := l.state.cma.value.Swap(0) // as before New has written it
	l.canReadPeer()
	l.state.cma.value.Store(value)
	if !l.canReadPeer() && !ends[0].cma.denied {
		t.Error("rank 0 never tries whether it can read the memory of rank 1")
	}
}

// Rank 1 names a process, and a word of its memory, that are not its own.
func TestARankReadsTheMemoryOfNoProcessButItsPeers(t *testing.T) {
	ends := job(t, 3)
	probe := &ends[1].state.cma
	mine := probe.descriptor.Load()
	probe.descriptor.Store(ends[2].state.cma.descriptor.Load())
	if ends[0].links[1].canReadPeer() {
		t.Error("rank 0 takes the process of rank 2 for that of rank 1")
	}
	probe.descriptor.Store(mine)
	probe.pid.Store(int64(os.Getppid()))
	if ends[2].links[1].canReadPeer() {
		t.Error("rank 2 takes a process that is in no job for that of rank 1")
	}
	needCMA(t, &ends[0].links[2])
}

// Rank 0 reads rank 1 again and again, which has changed the process that it names.
func TestAPeerCannotChangeItsProcess(t *testing.T) {
	ends := job(t, 2)
	l := &ends[0].links[1]
	needCMA(t, l)
	ends[1].state.cma.pid.Store(1)
	data := bytes.Repeat([]byte("own"), rendezvousMin)
	sent := make(chan error, 1)
	go func() { sent <- send(ends[1], sig, 0, data) }()
	into := make([]byte, len(data))
	if err := receive(t.Context(), ends[0], sig, 1, into); err != nil || !bytes.Equal(into, data) {
		t.Errorf("another message arrived, or %v", err)
	}
	if err := <-sent; err != nil || l.process.pid != os.Getpid() {
		t.Errorf("rank 0 reads the memory of process %d, and rank 1 says %v", l.process.pid, err)
	}
}

// The receiver releases the context of messages that were announced to it, with a place
// for the reply and without.
func TestASenderDoesNotWaitForAContextThatItsReceiverHasReleased(t *testing.T) {
	for _, messages := range []int{1, rendezvousMax + 1} {
		ends := job(t, 2)
		hold(ends[0])
		step := transport.Step{Signature: sig}
		for range messages {
			step.Sends = append(step.Sends, transport.Send{To: []int{1}, Data: make([]byte, rendezvousMin)})
		}
		sent := make(chan error, 1)
		go func() { sent <- ends[0].Exchange(t.Context(), step) }()
		other := sig
		other.Context++
		received := make(chan error, 1)
		go func() { received <- receive(t.Context(), ends[1], other, 0, nil) }() // so that the messages are unexpected
		l := &ends[1].links[0]
		until(ends[1], func() bool { return len(l.in.partials) == messages })
		ends[1].Release(sig.Context)
		if err := <-sent; err != nil {
			t.Error(err)
		}
		if err := errors.Join(send(ends[0], other, 1, nil), <-received); err != nil {
			t.Error(err)
		}
		if n := len(l.in.partials); n > 0 || ends[1].Held() != (transport.Held{}) {
			t.Errorf("%d messages of the context are left", n)
		}
	}
}

// needCMA skips the test where a rank cannot read the memory of its peer.
func needCMA(t *testing.T, l *link) {
	t.Helper()
	if !l.canReadPeer() {
		testenv.Skip(t, "no process may read another's memory here")
	}
}

// A message that is combined lands in the memory of the result, unless that holds the other
// operand. The elements of three bytes fit into no piece.
func TestAMessageIsReadWhereItIsCombined(t *testing.T) {
	const n = 3 * (combinedLen + bulkLen/2)
	sum := func(into, held, incoming []byte) {
		for i := range into {
			into[i] = held[i] + incoming[i]
		}
	}
	for _, begun := range []int{0, 1} { // bytes that were staged
		for _, inPlace := range []bool{false, true} {
			ends := job(t, 2)
			l := &ends[0].links[1]
			needCMA(t, l)
			message, into, held := make([]byte, n), make([]byte, n), make([]byte, n)
			for i := range n {
				message[i], held[i] = byte(i%251), byte(i%127)
			}
			want := make([]byte, n)
			sum(want, held, message)
			if inPlace {
				copy(into, held)
				held = into
			}
			r := &match.Recv{Recv: &transport.Recv{Into: into, Held: held, Combine: sum, Elem: 3}}
			r.Put(message[:begun])
			m := partial{recv: r, remote: remotePayload{address: uint64(uintptr(unsafe.Pointer(&message[0])))}}
			if err := l.readRemote(&m); err != nil || !bytes.Equal(into, want) {
				t.Errorf("in place %t, after %d bytes: another message, or %v", inPlace, begun, err)
			}
			if used := ends[0].bulk != nil; used != inPlace {
				t.Errorf("in place %t: the message was read elsewhere: %t", inPlace, used)
			}
		}
	}
}
