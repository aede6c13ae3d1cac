package shm

import (
	"context"
	"fmt"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
)

// typeMax is how long the text of a type may be, in bytes: a staging buffer takes it.
const typeMax = stagingLenMin / 2

// Send implements [transport.Messenger].
func (e *Endpoint) Send(ctx context.Context, to int, m transport.Match, typeName string, data []byte) error {
	e.engine.Lock()
	defer e.unlock()
	if err := e.engine.CheckSend(ctx, to); err != nil {
		return err
	}
	switch {
	case len(typeName) > typeMax:
		return fmt.Errorf("shm: the type's text has %d bytes, at most %d are allowed", len(typeName), typeMax)
	case to == e.cfg.Rank:
		return e.engine.SendSelf(ctx, m, typeName, data)
	}
	l := &e.links[to]
	if e.engine.Guard(l.checkPeer); e.engine.Failed() {
		return e.engine.Err()
	}
	if l.err != nil {
		return l.err
	}
	if len(data)+len(typeName) <= min(match.EagerMax, e.seg.stagingLen) && l.tagged.Credits.Use(len(data)) {
		l.enqueueTagged(taggedFrame{kind: eagerFrame, match: m, typeName: typeName}, data)
		return nil
	}
	return e.engine.SendRendezvous(ctx, to, &l.tagged.TaggedPeer, l, m, typeName, data)
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
