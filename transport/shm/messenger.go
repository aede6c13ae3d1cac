package shm

import (
	"context"

	"github.com/chorale-go/chorale/transport"
)

var _ transport.EagerMessenger = (*Endpoint)(nil)

// Send implements [transport.Messenger].
func (e *Endpoint) Send(ctx context.Context, to int, m transport.Match, typeName string, data []byte) error {
	if e.lookAndSendEager(ctx, to, m, typeName, data) {
		return nil
	}
	return e.engine.Send(ctx, to, m, typeName, data)
}

// Recv implements [transport.Messenger]. When ctx ends while the contents of a long
// message are on their way, the endpoint's part in the job ends.
func (e *Endpoint) Recv(ctx context.Context, from int, m transport.Match, typeName string, into []byte) (transport.MessageInfo, error) {
	if r, ok := e.lookAndRecvEager(ctx, from, m, typeName, into); ok {
		return r.Info(typeName), nil
	}
	return e.engine.Recv(ctx, from, m, typeName, into)
}

// TryRecv implements [transport.Messenger], as Recv does.
func (e *Endpoint) TryRecv(ctx context.Context, from int, m transport.Match, typeName string, into []byte) (transport.MessageInfo, bool, error) {
	return e.engine.TryRecv(ctx, from, m, typeName, into)
}

// Probe implements [transport.Messenger].
func (e *Endpoint) Probe(ctx context.Context, from int, m transport.Match, wait bool) (transport.MessageInfo, bool, error) {
	return e.engine.Probe(ctx, from, m, wait)
}

// StartSend implements [transport.Messenger].
func (e *Endpoint) StartSend(ctx context.Context, r *transport.Request, to int, m transport.Match, typeName string, data []byte) {
	if e.lookAndSendEager(ctx, to, m, typeName, data) {
		r.Finish(transport.MessageInfo{}, nil)
		return
	}
	e.engine.StartSend(ctx, r, to, m, typeName, data)
}

// StartRecv implements [transport.Messenger], with the errors of Recv.
func (e *Endpoint) StartRecv(ctx context.Context, r *transport.Request, from int, m transport.Match, typeName string, into []byte) {
	if got, ok := e.StartRecvEager(ctx, r, from, m, typeName, into); ok {
		r.Finish(got.Info(typeName), nil)
	}
}

// Wait implements [transport.Messenger].
func (e *Endpoint) Wait(r *transport.Request) {
	if r.Done() {
		return
	}
	if e.waitFast(r); !r.Done() {
		e.engine.Wait(r)
	}
}

// Cancel implements [transport.Messenger].
func (e *Endpoint) Cancel(r *transport.Request, err error) { e.engine.Cancel(r, err) }

// Progress implements [transport.Messenger].
func (e *Endpoint) Progress() { e.engine.Progress() }
