package progress

import (
	"context"
	"slices"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
)

// A PendingSend is a tagged message that this rank sends by rendezvous, and that is
// not completely written.
type PendingSend struct {
	Number uint32
	Data   []byte
	Sent   int // bytes that are written
	op     *Op // nil if Data is a copy, and no operation waits
}

// Complete ends the wait for the message, all of which is written.
func (s *PendingSend) Complete() {
	if s.op != nil {
		s.op.Finish(nil)
	}
}

// Copied reports whether Data is a copy, for which no operation waits.
func (s *PendingSend) Copied() bool { return s.op == nil }

// TaggedPeer is the part of a link that is about the tagged messages between this
// rank and a peer.
type TaggedPeer struct {
	Credits  match.Credits
	Waiters  int // operations that wait for messages from the peer, or for a transfer
	last     uint32
	pending  []*PendingSend // announced to the peer (RTS), which has not asked for them (CTS)
	lastType string         // the type of the last message, so that equal ones share memory
}

// Announce returns the next rendezvous message to the peer. O is the operation that
// waits for it, or nil if data is a copy.
func (p *TaggedPeer) Announce(data []byte, o *Op) *PendingSend {
	p.last++
	s := &PendingSend{Number: p.last, Data: data, op: o}
	p.pending = append(p.pending, s)
	return s
}

// CTS returns the message that the peer asks for, or nil if it is withdrawn. From here
// on its transfer cannot be canceled alone.
func (p *TaggedPeer) CTS(number uint32) *PendingSend {
	i := slices.IndexFunc(p.pending, func(s *PendingSend) bool { return s.Number == number })
	if i < 0 {
		return nil
	}
	s := p.pending[i]
	if s.op != nil {
		if s.op.over {
			return nil // its goroutine is about to withdraw it
		}
		s.op.subject.committed = true
	}
	p.pending = slices.Delete(p.pending, i, i+1)
	return s
}

// Withdraw removes a message, and reports whether the peer had not asked for it.
func (p *TaggedPeer) Withdraw(s *PendingSend) bool {
	i := slices.Index(p.pending, s)
	if i < 0 {
		return false
	}
	p.pending = slices.Delete(p.pending, i, i+1)
	return true
}

// Drop removes all messages.
func (p *TaggedPeer) Drop() { p.pending = nil }

// TypeName returns the text of a type.
func (p *TaggedPeer) TypeName(text []byte) string {
	if string(text) != p.lastType {
		p.lastType = string(text)
	}
	return p.lastType
}

// A Wire writes the frames of a rendezvous.
type Wire interface {
	// SendRTS announces a message.
	SendRTS(s *PendingSend, m transport.Match, typeName string)
	// SendWithdraw takes an announced message back.
	SendWithdraw(s *PendingSend)
	// Withdrawn drops the fragments of a message that are not written.
	Withdrawn(s *PendingSend)
	// Gone reports whether the peer has gone.
	Gone() bool
}

// SendRendezvous sends a tagged message by rendezvous, and returns when the peer has
// asked for it and all of it is written.
func (e *Engine) SendRendezvous(ctx context.Context, peer int, p *TaggedPeer, w Wire, m transport.Match, typeName string, data []byte) error {
	o := e.begin(ctx, transferOp, peer)
	defer e.Leave(o)
	o.subject.pattern.Match = m
	s := p.Announce(data, o)
	e.transport.AddWaiters(peer, 1)
	defer e.transport.AddWaiters(peer, -1)
	w.SendRTS(s, m, typeName)
	err := o.Await()
	if p.Withdraw(s) && !w.Gone() && e.end.err == nil {
		w.SendWithdraw(s)
	}
	w.Withdrawn(s)
	return err
}
