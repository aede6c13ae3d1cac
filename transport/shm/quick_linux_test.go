package shm

import (
	"testing"

	"github.com/chorale-go/chorale/transport"
)

// Its message is in a box, and the receiver gone, when the sender looks.
func TestAShortMessageThatWasTakenByARankThatHasGoneIsNotMourned(t *testing.T) {
	for _, size := range []int{1, inlineMax + 1, quickMost} {
		ends := job(t, 2)
		e := ends[0]
		step := transport.Step{Signature: sig, Sends: []transport.Send{{To: []int{1}, Data: make([]byte, size)}}}
		e.lock()
		if !e.sendQuickly(&step.Sends[0], label{sig.Context, sig.Sequence, e.register.hash(sig.Call)}) {
			t.Fatal("nothing was sent")
		}
		e.unlock()
		recv := transport.Step{Signature: sig, Recvs: []transport.Recv{{From: 0, Into: make([]byte, size)}}}
		if err := ends[1].Exchange(t.Context(), recv); err != nil {
			t.Fatal(err)
		}
		if err := ends[1].Close(); err != nil {
			t.Fatal(err)
		}
		e.lock()
		e.seePartings()
		e.mourn(&step, quickMost)
		if e.err != nil {
			t.Errorf("%d bytes: %v", size, e.err)
		}
		e.unlock()
	}
}

// A sender waits for room, for its receiver to be less than a window of frames
// behind, or to have taken all.
func TestASenderThatSleepsIsToldOfShortMessagesThatAreTaken(t *testing.T) {
	for _, behind := range []int{1, window, 16} {
		ends := job(t, 2)
		step := transport.Step{Signature: sig, Sends: []transport.Send{{To: []int{1}, Data: []byte("x")}}}
		for range behind {
			if err := ends[0].Exchange(t.Context(), step); err != nil {
				t.Fatal(err)
			}
		}
		ends[0].seat.status.Store(joined | forAcks)
		recv := transport.Step{Signature: sig, Recvs: []transport.Recv{{From: 0, Into: make([]byte, 1)}}}
		if err := ends[1].Exchange(t.Context(), recv); err != nil {
			t.Fatal(err)
		}
		if ends[0].seat.status.Load() != joined {
			t.Errorf("%d frames behind: the sender sleeps on", behind)
		}
	}
}
