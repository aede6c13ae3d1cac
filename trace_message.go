package chorale

import (
	"context"
	"unsafe"

	"github.com/chorale-go/chorale/internal/trace"
	"github.com/chorale-go/chorale/transport"
)

// A stream is the messages between this rank and another one with one tag.
type stream struct {
	sent    bool
	peer    int32
	context uint64
	tag     int64
}

// A tracedEndpoint records tagged messages.
type tracedEndpoint struct {
	transport.Endpoint
	job *job
}

// startMessage returns when an operation on a message begins, and whether it is recorded.
func (t *tracer) startMessage() (start int64, recorded bool) {
	if n := t.messages.Add(1) - 1; t.leavesOut(n) {
		t.skipped.Add(1)
		t.unnumbered.Store(true)
		return 0, false
	}
	return t.now(), true
}

// message records an operation on a message. Its request is nil if it has none.
func (j *job) message(e trace.Event, r *transport.Request) {
	t := j.tracer
	e.End = t.now()
	e.Group, e.Peer = uint16(j.env.Group), int32(j.launchRank(int(e.Peer)))
	stack := callersHere(2)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pay(e.End, 0)
	e.Place = t.place(stack)
	e.Number = t.number(e, r)
	t.ring.Add(e)
}

// number returns the number of a message in its stream, or 0 if it is not known: messages
// were left out, one may come from any rank or have any tag, or one has failed.
func (t *tracer) number(e trace.Event, r *transport.Request) int64 {
	key := uintptr(unsafe.Pointer(r)) // which keeps nothing alive
	s := stream{e.Kind == trace.Send || e.Kind == trace.StartSend, e.Peer, e.Communicator(), e.Tag}
	switch {
	case t.unnumbered.Load():
		return 0
	case e.Kind == trace.Wait:
		n := t.posted[key]
		delete(t.posted, key)
		return n
	case e.Failed && r == nil:
		return 0
	case e.Peer < 0 || e.Tag < 0 || e.Failed || len(t.streams) == maxStreams || len(t.posted) == maxStreams:
		t.unnumbered.Store(true)
		return 0
	}
	t.streams[s]++
	n := t.streams[s]
	if e.Kind == trace.StartRecv {
		t.posted[key] = n
		return 0
	}
	return n
}

func (e *tracedEndpoint) Send(ctx context.Context, to int, m transport.Match, typeName string, data []byte) error {
	start, recorded := e.job.tracer.startMessage()
	err := e.Endpoint.Send(ctx, to, m, typeName, data)
	if recorded {
		e.job.message(newMessage(trace.Send, start, to, m, len(data), err), nil)
	}
	return err
}

func (e *tracedEndpoint) Recv(ctx context.Context, from int, m transport.Match, typeName string, into []byte) (transport.MessageInfo, error) {
	start, recorded := e.job.tracer.startMessage()
	info, err := e.Endpoint.Recv(ctx, from, m, typeName, into)
	if recorded {
		if err == nil {
			from, m.Tag = info.From, info.Tag
		}
		e.job.message(newMessage(trace.Recv, start, from, m, info.Size, err), nil)
	}
	return info, err
}

func (e *tracedEndpoint) StartSend(ctx context.Context, r *transport.Request, to int, m transport.Match, typeName string, data []byte) {
	start, recorded := e.job.tracer.startMessage()
	e.Endpoint.StartSend(ctx, r, to, m, typeName, data)
	if recorded {
		e.job.message(newMessage(trace.StartSend, start, to, m, len(data), nil), r)
	}
}

func (e *tracedEndpoint) StartRecv(ctx context.Context, r *transport.Request, from int, m transport.Match, typeName string, into []byte) {
	start, recorded := e.job.tracer.startMessage()
	e.Endpoint.StartRecv(ctx, r, from, m, typeName, into)
	if recorded {
		e.job.message(newMessage(trace.StartRecv, start, from, m, len(into), nil), r)
	}
}

func (e *tracedEndpoint) Wait(r *transport.Request) {
	start, recorded := e.job.tracer.startMessage()
	e.Endpoint.Wait(r)
	if !recorded {
		return
	}
	from, m := transport.Any, transport.Match{}
	if r.Info.Type != "" { // it is a receive
		from, m.Tag = r.Info.From, r.Info.Tag
	}
	e.job.message(newMessage(trace.Wait, start, from, m, r.Info.Size, r.Err), r)
}

func newMessage(kind trace.Kind, start int64, peer int, m transport.Match, bytes int, err error) trace.Event {
	return trace.Event{
		Kind: kind, Failed: err != nil, Start: start, Peer: int32(peer), Context: m.Context, Tag: int64(m.Tag), Amount: int64(bytes),
	}
}
