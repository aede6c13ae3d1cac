//go:build mpi

package mpi

import (
	"context"
	"errors"
	"fmt"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
	"github.com/chorale-go/chorale/transport/internal/progress"
)

var _ progress.Wire = (*link)(nil)

// Send implements [transport.Messenger].
func (e *Endpoint) Send(ctx context.Context, to int, m transport.Match, typeName string, data []byte) error {
	return e.engine.Send(ctx, to, m, typeName, data)
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

// StartSend implements [transport.Messenger].
func (e *Endpoint) StartSend(ctx context.Context, r *transport.Request, to int, m transport.Match, typeName string, data []byte) {
	e.engine.StartSend(ctx, r, to, m, typeName, data)
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

// SendRTS implements [progress.Wire].
func (l *link) SendRTS(s *progress.PendingSend, m transport.Match, typeName string) {
	l.detach(header{kind: rtsFrame, number: s.Number, context: m.Context, total: len(s.Data), offset: m.Tag}, typeName, nil)
}

// SendWithdraw implements [progress.Wire].
func (l *link) SendWithdraw(s *progress.PendingSend) {
	l.control(header{kind: withdrawFrame, number: s.Number})
}

// Withdrawn implements [progress.Wire]. Contents that were asked for cannot be withdrawn.
func (l *link) Withdrawn(*progress.PendingSend) {}

// Gone implements [progress.Wire].
func (l *link) Gone() bool { return l.err != nil }

// handleTagged takes a frame of the tagged-message protocol.
func (l *link) handleTagged(h header, text, body []byte) error {
	switch h.kind {
	case eagerFrame, rtsFrame:
		return l.handleEager(h, text, body)
	case withdrawFrame:
		l.e.engine.Tagged().Withdraw(l.peer, h.number)
		withdrawn := func(p *pull) bool { return p.link == l && p.kind == ctsFrame && p.number == h.number }
		l.e.pulls.drop(withdrawn)
		l.e.pulls.cancel(l, func(q *piece) bool { return withdrawn(q.pull) })
	case taggedCreditFrame:
		l.tagged.Credits.Return(h.total)
	}
	return nil
}

// handleEager takes an eager message, or the announcement of a rendezvous message.
func (l *link) handleEager(h header, text, body []byte) error {
	switch {
	case h.kind == eagerFrame && h.total > match.EagerMax:
		return fmt.Errorf("an eager message of %d bytes", h.total)
	case h.kind == eagerFrame && !l.tagged.Credits.Arrive(h.total):
		return errors.New("an eager message without credits")
	}
	info := transport.MessageInfo{From: l.peer, Tag: h.offset, Size: h.total, Type: l.tagged.TypeName(text)}
	if h.kind == rtsFrame {
		if l.e.engine.Tagged().Overrun(l.peer) {
			return errors.New("more announcements than a rank makes")
		}
		l.e.engine.Announced(&info, h.context, h.number)
		return nil
	}
	m := l.e.engine.Tagged().New(h.total)
	m.MessageInfo, m.Context = info, h.context
	copy(m.Data, body)
	l.e.engine.Arrived(m)
	return nil
}
