package chorale

import (
	"context"
	"math/bits"
	"time"

	"github.com/chorale-go/chorale/transport"
)

// The kinds of operations on tagged messages.
const (
	sendKind = iota
	recvKind
	startSendKind
	startRecvKind
	waitKind
	messageKinds
)

var kindNames = [messageKinds]string{"send", "recv", "start send", "start recv", "wait"}

// A profiledEndpoint records tagged messages.
type profiledEndpoint struct {
	transport.Endpoint
	recorder *recorder
}

// begin returns what counts an operation on a tagged message of about so many bytes, and
// its beginning if it is timed.
func (e *profiledEndpoint) begin(kind, bytes int) (t *tally, timed bool, start time.Time) {
	t = &e.recorder.messages[kind][bits.Len(uint(bytes))]
	if !t.isTimed() {
		return t, false, start
	}
	return t, true, time.Now()
}

// isTimed reports whether the next message is timed.
func (t *tally) isTimed() bool { return t.slow.Load() || timed(uint32(t.calls.Load())) }

// end counts an operation that has succeeded and has moved so many bytes. The program has
// called the caller of its caller.
func (e *profiledEndpoint) end(t *tally, bytes int, timed bool, start time.Time) {
	t.calls.Add(1)
	if !timed {
		return
	}
	elapsed := time.Since(start)
	if slow := elapsed >= slowCall; slow != t.slow.Load() {
		t.slow.Store(slow)
	}
	r, at := e.recorder, site{callersHere(2), t.call}
	r.mu.Lock()
	defer r.mu.Unlock()
	t.row, t.time, t.bytes = r.row(at), elapsed, int64(bytes)
	r.tell(t)
}

func (e *profiledEndpoint) Send(ctx context.Context, to int, m transport.Match, typeName string, data []byte) error {
	t, timed, start := e.begin(sendKind, len(data))
	err := e.Endpoint.Send(ctx, to, m, typeName, data)
	if err == nil {
		e.end(t, len(data), timed, start)
	}
	return err
}

func (e *profiledEndpoint) Recv(ctx context.Context, from int, m transport.Match, typeName string, into []byte) (transport.MessageInfo, error) {
	t, timed, start := e.begin(recvKind, len(into))
	info, err := e.Endpoint.Recv(ctx, from, m, typeName, into)
	if err == nil {
		e.end(t, info.Size, timed, start)
	}
	return info, err
}

func (e *profiledEndpoint) StartSend(ctx context.Context, r *transport.Request, to int, m transport.Match, typeName string, data []byte) {
	t, timed, start := e.begin(startSendKind, len(data))
	e.Endpoint.StartSend(ctx, r, to, m, typeName, data)
	e.end(t, len(data), timed, start)
}

func (e *profiledEndpoint) StartRecv(ctx context.Context, r *transport.Request, from int, m transport.Match, typeName string, into []byte) {
	t, timed, start := e.begin(startRecvKind, len(into))
	e.Endpoint.StartRecv(ctx, r, from, m, typeName, into)
	e.end(t, received(r), timed, start)
}

func (e *profiledEndpoint) Wait(r *transport.Request) {
	if r.Done() { // no call waits
		e.Endpoint.Wait(r)
		return
	}
	t, timed, start := e.begin(waitKind, 0)
	e.Endpoint.Wait(r)
	e.end(t, received(r), timed, start)
}

// received returns the bytes of a receive that is done, else 0.
func received(r *transport.Request) int {
	if !r.Done() || r.Err != nil {
		return 0
	}
	return r.Info.Size
}
