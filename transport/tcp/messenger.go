package tcp

import (
	"context"
	"fmt"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
)

// Send implements [transport.Messenger].
func (e *Endpoint) Send(ctx context.Context, to int, m transport.Match, typeName string, data []byte) error {
	e.engine.Lock()
	defer e.engine.Unlock()
	if err := e.engine.CheckSend(ctx, to); err != nil {
		return err
	}
	switch {
	case len(typeName) > callMax:
		return fmt.Errorf("tcp: the type's text has %d bytes, at most %d are allowed", len(typeName), callMax)
	case to == e.cfg.Rank:
		return e.engine.SendSelf(ctx, m, typeName, data)
	}
	l := e.dialed(to)
	if err := l.awaitUp(ctx); err != nil {
		return err
	}
	if len(data) <= match.EagerMax && l.tagged.Credits.Use(len(data)) {
		l.enqueueTagged(header{kind: eagerFrame, body: len(data), context: m.Context, total: len(data)}, m.Tag, typeName, data)
		return nil
	}
	return e.engine.SendRendezvous(ctx, to, &l.tagged.TaggedPeer, l, m, typeName, data)
}

// awaitUp returns when the link is up, and has taken what the peer has sent: a rank
// that only sends would never learn otherwise that the peer has gone.
func (l *link) awaitUp(ctx context.Context) error {
	for l.phase != up && l.err == nil {
		if err := l.e.engine.AwaitLink(ctx, l.peer); err != nil {
			return err
		}
	}
	l.e.engine.Guard(func() { l.poll(); l.e.settle() })
	if err := l.e.engine.Err(); err != nil {
		return err
	}
	return l.err
}

// Recv implements [transport.Messenger]. When ctx ends while the contents of a long
// message are on their way, the endpoint's part in the job ends.
func (e *Endpoint) Recv(ctx context.Context, from int, m transport.Match, typeName string, into []byte) (transport.MessageInfo, error) {
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
