package shm

import (
	"testing"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
)

// The message is in a staging buffer, and the receiver has gone, when the sender looks.
func TestAShortMessageThatWasTakenByARankThatHasGoneIsDelivered(t *testing.T) {
	for _, size := range []int{1, inlineMax + 1, fastMax} {
		ends := job(t, 2)
		e := ends[0]
		step := transport.Step{Signature: sig, Sends: []transport.Send{{To: []int{1}, Data: make([]byte, size)}}}
		e.engine.Lock()
		if !e.sendFast(&step.Sends[0], &match.Call{Signature: sig, Hash: e.calls.hash(sig.Call)}) {
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
		e.engine.Lock()
		e.checkPeers()
		e.failUndelivered(&step, fastMax)
		if err := e.engine.Err(); err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
		e.unlock()
	}
}

// A sender waits for room, for its receiver to be less than pipelineDepth frames
// behind, or to have taken all.
func TestASenderThatSleepsIsWokenWhenShortMessagesAreTaken(t *testing.T) {
	for _, behind := range []int{1, pipelineDepth, 16} {
		ends := job(t, 2)
		step := transport.Step{Signature: sig, Sends: []transport.Send{{To: []int{1}, Data: []byte("x")}}}
		for range behind {
			if err := ends[0].Exchange(t.Context(), step); err != nil {
				t.Fatal(err)
			}
		}
		ends[0].state.status.Store(joined | forTaken)
		recv := transport.Step{Signature: sig, Recvs: []transport.Recv{{From: 0, Into: make([]byte, 1)}}}
		if err := ends[1].Exchange(t.Context(), recv); err != nil {
			t.Fatal(err)
		}
		if ends[0].state.status.Load() != joined {
			t.Errorf("%d frames behind: the sender sleeps on", behind)
		}
	}
}
