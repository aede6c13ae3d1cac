package progress

import (
	"slices"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
)

// A PendingSend is a tagged message that this rank sends by rendezvous, and that is
// not completely written.
type PendingSend struct {
	Number  uint32
	Data    []byte
	Sent    int      // bytes that are written
	message *Message // nil if Data is a copy, which nothing waits for
}

// Complete ends the wait for the message, all of which is written.
func (s *PendingSend) Complete() {
	if s.message != nil {
		s.message.finish(nil)
	}
}

// Copied reports whether Data is a copy, which nothing waits for.
func (s *PendingSend) Copied() bool { return s.message == nil }

// TaggedPeer is the part of a link that is about the tagged messages between this
// rank and a peer.
type TaggedPeer struct {
	Credits  match.Credits
	Waiters  int // what waits for messages from the peer, or for a transfer
	last     uint32
	pending  []*PendingSend // announced to the peer (RTS), which has not asked for them (CTS)
	lastType string         // the type of the last message, so that equal ones share memory
}

// AnnounceCopy returns the next rendezvous message to the peer. Data is a copy, which
// nothing waits for.
func (p *TaggedPeer) AnnounceCopy(data []byte) *PendingSend {
	s := new(PendingSend)
	p.announce(s, data)
	return s
}

func (p *TaggedPeer) announce(s *PendingSend, data []byte) {
	p.last++
	s.Number, s.Data, s.Sent = p.last, data, 0
	p.pending = append(p.pending, s)
}

// CTS returns the message that the peer asks for, or nil if it is withdrawn. From here
// on its transfer cannot be canceled alone.
func (p *TaggedPeer) CTS(number uint32) *PendingSend {
	i := slices.IndexFunc(p.pending, func(s *PendingSend) bool { return s.Number == number })
	if i < 0 {
		return nil
	}
	s := p.pending[i]
	if s.message != nil {
		s.message.phase = committed
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
