package tcp

import (
	"context"

	"github.com/chorale-go/chorale/transport"
)

// Send implements [transport.Messenger].
func (e *Endpoint) Send(ctx context.Context, to int, m transport.Match, typeName string, data []byte) error {
	return e.engine.Send(ctx, to, m, typeName, data)
}

// Recv implements [transport.Messenger]. When ctx ends while the contents of a long
// message are on their way, its communicator is revoked.
func (e *Endpoint) Recv(ctx context.Context, from int, m transport.Match, typeName string, into []byte) (transport.MessageInfo, error) {
	e.endBurstsBefore()
	return e.engine.Recv(ctx, from, m, typeName, into)
}

// TryRecv implements [transport.Messenger], as Recv does.
func (e *Endpoint) TryRecv(ctx context.Context, from int, m transport.Match, typeName string, into []byte) (transport.MessageInfo, bool, error) {
	e.endBurstsBefore()
	return e.engine.TryRecv(ctx, from, m, typeName, into)
}

// Probe implements [transport.Messenger].
func (e *Endpoint) Probe(ctx context.Context, from int, m transport.Match, wait bool) (transport.MessageInfo, bool, error) {
	e.endBurstsBefore()
	return e.engine.Probe(ctx, from, m, wait)
}

// StartSend implements [transport.Messenger].
func (e *Endpoint) StartSend(ctx context.Context, r *transport.Request, to int, m transport.Match, typeName string, data []byte) {
	e.engine.Lock()
	defer e.engine.Unlock()
	e.bursts.starting = true
	e.engine.StartSendLocked(ctx, r, to, m, typeName, data)
	e.bursts.starting = false
}

// StartRecv implements [transport.Messenger], with the errors of Recv.
func (e *Endpoint) StartRecv(ctx context.Context, r *transport.Request, from int, m transport.Match, typeName string, into []byte) {
	e.engine.StartRecv(ctx, r, from, m, typeName, into)
}

// Wait implements [transport.Messenger].
func (e *Endpoint) Wait(r *transport.Request) { e.engine.Wait(r) }

// Cancel implements [transport.Messenger].
func (e *Endpoint) Cancel(r *transport.Request, err error) { e.engine.Cancel(r, err) }

// Progress implements [transport.Messenger].
func (e *Endpoint) Progress() { e.engine.Progress() }
