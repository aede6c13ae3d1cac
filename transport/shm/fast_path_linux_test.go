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

// What the fast path cannot take is where it was.
func TestRecvEagerTakesTheMessageThatIsAskedForAlone(t *testing.T) {
	ends := job(t, 2)
	m := transport.Match{Context: 1, Tag: 2}
	for _, size := range []int{1, inlineMax + 1} { // in a cell, and in a staging buffer
		sent := make([]byte, size)
		sent[0] = byte(size)
		if !ends[0].sendEager(t.Context(), 1, m, "bytes", sent) {
			t.Fatalf("%d bytes were not sent", size)
		}
		into := make([]byte, size)
		for what, recv := range map[string]func() (transport.MessageInfo, bool){
			"another tag": func() (transport.MessageInfo, bool) {
				return ends[1].recvEager(t.Context(), 0, transport.Match{Context: 1, Tag: 3}, "bytes", into)
			},
			"another context": func() (transport.MessageInfo, bool) {
				return ends[1].recvEager(t.Context(), 0, transport.Match{Context: 2, Tag: 2}, "bytes", into)
			},
			"another type": func() (transport.MessageInfo, bool) { return ends[1].recvEager(t.Context(), 0, m, "int", into) },
			"less memory": func() (transport.MessageInfo, bool) {
				return ends[1].recvEager(t.Context(), 0, m, "bytes", into[:size-1])
			},
		} {
			if info, ok := recv(); ok {
				t.Errorf("a receive with %s has taken %+v", what, info)
			}
		}
		want := transport.MessageInfo{From: 0, Tag: 2, Size: size, Type: "bytes"}
		if info, ok := ends[1].recvEager(t.Context(), transport.Any, m, "bytes", into); !ok || info != want || into[0] != sent[0] {
			t.Errorf("got %+v, %v, %v: want %+v", info, ok, into[0], want)
		}
		if held := ends[1].links[0].tagged.held; held != 0 {
			t.Errorf("%d bytes are held after the message was received", held)
		}
	}
}

// A message that waits for room is not overtaken.
func TestSendEagerSendsInOrder(t *testing.T) {
	ends := job(t, 2)
	m := transport.Match{Context: 1, Tag: 2}
	sent := 0
	for ends[0].sendEager(t.Context(), 1, m, "bytes", []byte{byte(sent)}) {
		sent++
	}
	var r transport.Request
	ends[0].StartSend(t.Context(), &r, 1, m, "bytes", []byte{byte(sent)}) // there is no room
	into := make([]byte, 1)
	if _, ok := ends[1].recvEager(t.Context(), 0, m, "bytes", into); !ok || into[0] != 0 {
		t.Fatal("the first message was not received")
	}
	if ends[0].sendEager(t.Context(), 1, m, "bytes", []byte{byte(sent + 1)}) {
		t.Error("a message has overtaken one that waits for room")
	}
	ends[0].Wait(&r)
	for i := 1; i <= sent; i++ {
		if _, err := ends[1].Recv(t.Context(), 0, m, "bytes", into); err != nil || into[0] != byte(i) {
			t.Fatalf("message %d: got %d, %v", i, into[0], err)
		}
	}
}
