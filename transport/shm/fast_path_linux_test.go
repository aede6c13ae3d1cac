package shm

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
	"github.com/chorale-go/chorale/transport/internal/progress"
)

// The message is in a staging buffer, and the receiver has gone, when the sender looks.
func TestAShortMessageThatWasTakenByARankThatHasGoneIsDelivered(t *testing.T) {
	for _, size := range []int{1, inlineMax + 1, pairMax + 1, fastMax} {
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
		recv := transport.Step{Signature: sig, Recvs: []transport.Recv{{From: 0, Into: make([]byte, 1)}}}
		if err := errors.Join(ends[0].Exchange(t.Context(), step), ends[1].Exchange(t.Context(), recv)); err != nil {
			t.Fatal(err) // the only message in a pair cell
		}
		for range behind {
			if err := ends[0].Exchange(t.Context(), step); err != nil {
				t.Fatal(err)
			}
		}
		ends[0].state.status.Store(joined | forTaken)
		if err := ends[1].Exchange(t.Context(), recv); err != nil {
			t.Fatal(err)
		}
		if ends[0].state.status.Load() != joined {
			t.Errorf("%d frames behind: the sender sleeps on", behind)
		}
	}
}

// The rank waits for one that sends nothing, and then leaves the waiting to an operation. A
// goroutine that wants the lock is not kept waiting by yields.
func TestAnOversubscribedRankYieldsOnTheFastPath(t *testing.T) {
	e := job(t, 4)[0]
	oversubscribe(e)
	step := transport.Step{Signature: sig, Recvs: []transport.Recv{{From: 1, Into: make([]byte, 1)}}}
	for _, test := range []struct {
		waits    bool
		entering int32
		want     int
	}{{true, 0, fastYields}, {true, 1, 0}, {false, 0, 0}} {
		e.engine.Lock()
		e.wait.yields = 0
		e.engine.Entering.Add(test.entering)
		if e.fastPath(&step, test.waits) || len(step.Recvs) != 1 {
			t.Error("a message was received that nobody has sent")
		}
		e.engine.Entering.Add(-test.entering)
		if e.wait.yields != test.want {
			t.Errorf("%+v: the rank has yielded %d times", test, e.wait.yields)
		}
		e.unlock()
	}
}

// Ranks that need this rank's core get it: those to which it has sent, and the one for which
// it waits.
func TestAnOversubscribedRankPollsForAMessageUnlessItsCoreIsNeeded(t *testing.T) {
	e := job(t, 4)[0]
	e.engine.Lock()
	defer e.unlock()
	l := &e.links[1]
	e.wait.Oversubscribed = false
	if n := l.fastPolls(); e.wait.MaySpin() && n != fastPolls {
		t.Errorf("a rank with a core of its own polls %d times", n)
	}
	oversubscribe(e)
	want := func(n int, what string) {
		t.Helper()
		if got := l.fastPolls(); got != n {
			t.Errorf("%s: the rank polls %d times, want %d", what, got, n)
		}
	}
	want(fastPollsOversubscribed, "it knows nothing of its peers")
	e.state.core.Store(1)
	l.state.core.Store(2)
	want(fastPollsOversubscribed, "the peer is on another core")
	l.state.core.Store(1)
	want(1, "the peer is on the same core")
	l.state.core.Store(0)
	step := transport.Step{Signature: sig, Sends: []transport.Send{{To: []int{2}, Data: []byte("x")}}}
	if !e.fastPath(&step, true) {
		t.Fatal("nothing was sent")
	}
	want(1, "it has sent")
	if !e.fastYield() {
		t.Fatal("it may not yield")
	}
	want(fastPollsOversubscribed, "it has sent, and yielded since")
}

// oversubscribe makes a rank one of more than there are cores, alone in its process.
func oversubscribe(e *Endpoint) {
	e.wait.Processors = progress.Share(1<<20, new(atomic.Int32))
}

// What the fast path cannot take is where it was.
func TestRecvEagerTakesTheMessageThatIsAskedForAlone(t *testing.T) {
	ends := job(t, 2)
	m := transport.Match{Context: 1, Tag: 2}
	for _, size := range []int{1, 1, inlineMax + 1} { // in a pair cell, a cell, and a staging buffer
		sent := make([]byte, size)
		sent[0] = byte(size)
		if !ends[0].SendEager(t.Context(), 1, m, "bytes", sent) {
			t.Fatalf("%d bytes were not sent", size)
		}
		into := make([]byte, size)
		for what, recv := range map[string]func() (transport.Received, bool){
			"another tag": func() (transport.Received, bool) {
				return ends[1].RecvEager(t.Context(), 0, transport.Match{Context: 1, Tag: 3}, "bytes", into)
			},
			"another context": func() (transport.Received, bool) {
				return ends[1].RecvEager(t.Context(), 0, transport.Match{Context: 2, Tag: 2}, "bytes", into)
			},
			"another type": func() (transport.Received, bool) { return ends[1].RecvEager(t.Context(), 0, m, "int", into) },
			"less memory": func() (transport.Received, bool) {
				return ends[1].RecvEager(t.Context(), 0, m, "bytes", into[:size-1])
			},
		} {
			if info, ok := recv(); ok {
				t.Errorf("a receive with %s has taken %+v", what, info)
			}
		}
		want := transport.Received{From: 0, Tag: 2, Size: size}
		if info, ok := ends[1].RecvEager(t.Context(), transport.Any, m, "bytes", into); !ok || info != want || into[0] != sent[0] {
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
	for ends[0].SendEager(t.Context(), 1, m, "bytes", []byte{byte(sent)}) {
		sent++
	}
	var r transport.Request
	ends[0].StartSend(t.Context(), &r, 1, m, "bytes", []byte{byte(sent)}) // there is no room
	into := make([]byte, 1)
	if _, ok := ends[1].RecvEager(t.Context(), 0, m, "bytes", into); !ok || into[0] != 0 {
		t.Fatal("the first message was not received")
	}
	if ends[0].SendEager(t.Context(), 1, m, "bytes", []byte{byte(sent + 1)}) {
		t.Error("a message has overtaken one that waits for room")
	}
	ends[0].Wait(&r)
	for i := 1; i <= sent; i++ {
		if _, err := ends[1].Recv(t.Context(), 0, m, "bytes", into); err != nil || into[0] != byte(i) {
			t.Fatalf("message %d: got %d, %v", i, into[0], err)
		}
	}
}

func TestAReceiveThatIsStartedTakesWhatHasArrivedBehindThoseStartedBefore(t *testing.T) {
	ends := job(t, 2)
	m := func(tag int) transport.Match { return transport.Match{Context: 1, Tag: tag} }
	send := func(tag int, text string) {
		t.Helper()
		if !ends[0].SendEager(t.Context(), 1, m(tag), "bytes", []byte(text)) {
			t.Fatalf("%s was not sent", text)
		}
	}
	type started struct {
		transport.Request
		into [1]byte
	}
	start := func(tag int, typeName string) *started {
		r := new(started)
		ends[1].StartRecv(t.Context(), &r.Request, 0, m(tag), typeName, r.into[:])
		return r
	}
	got := func(what string, r *started, want string) {
		t.Helper()
		if !r.Done() || r.Err != nil || string(r.into[:]) != want || r.Info.Size != 1 {
			t.Errorf("%s: done %v, %q, %+v, %v: want %q", what, r.Done(), r.into, r.Info, r.Err, want)
		}
	}
	first, other, wrong := start(1, "bytes"), start(2, "bytes"), start(3, "int")
	for _, s := range []struct {
		tag  int
		text string
	}{{2, "b"}, {3, "c"}, {1, "a"}, {3, "d"}, {9, "e"}, {1, "f"}} {
		send(s.tag, s.text)
	}
	if last := start(3, "bytes"); !wrong.Done() || !errors.As(wrong.Err, new(*transport.TypeError)) {
		t.Errorf("a receive of another type: %v", wrong.Err)
	} else {
		got("the receive that was started last", last, "c") // the failed one has left it
	}
	got("a receive of another tag", other, "b")
	if first.Done() {
		t.Error("a message was received that lies behind the one that was asked for")
	}
	got("the next receive", start(3, "bytes"), "d")
	got("the receive that was started first", first, "a")
	behind := start(1, "bytes")
	if behind.Done() {
		t.Error("a message has overtaken one that nobody has asked for")
	}
	ends[1].Wait(&behind.Request)
	got("a receive of what lies behind another message", behind, "f")
	got("a receive of a message that was passed over", start(9, "bytes"), "e")
	if held := ends[1].links[0].tagged.held; held != 0 {
		t.Errorf("%d bytes are held after all messages were received", held)
	}
}
