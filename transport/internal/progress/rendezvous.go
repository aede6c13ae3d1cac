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
	Offer   uint64   // the transport's, by which the peer takes the message; 0: it has to ask for it
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
	Credits match.Credits
	Waiters int // what waits for messages from the peer, or for a transfer
	// Claimed reports whether the peer has begun to take a message that has an Offer. If it
	// has not, it cannot from then on.
	Claimed  func(s *PendingSend) bool
	last     uint32
	pending  []*PendingSend // announced to the peer (RTS), which has not asked for them (CTS)
	keptBack messageList    // wait until fewer are announced
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

// keepBack has a message wait for AnnounceKeptBack.
func (p *TaggedPeer) keepBack(m *Message) {
	p.keptBack.add(m)
	p.Credits.KeptBack = true
}

// release removes a message from those that are kept back.
func (p *TaggedPeer) release(m *Message) {
	p.keptBack.remove(m)
	p.Credits.KeptBack = p.keptBack.first != nil
}

// AnnounceKeptBack announces the messages that wait for it, in the order of their starts,
// while less than [match.AnnouncedMax] are announced. The transport calls it after CTS and
// Offered, as soon as it may write.
func (p *TaggedPeer) AnnounceKeptBack() {
	for p.keptBack.first != nil && len(p.pending) < match.AnnouncedMax {
		m := p.keptBack.first
		p.release(m)
		m.phase = announced
		m.send.message = m
		p.announce(&m.send, m.data)
		m.wire.SendRTS(&m.send, m.pattern.Match, m.typeName)
	}
}

// CTS returns the message that the peer asks for, or nil if it is withdrawn. From here
// on its transfer cannot be canceled alone.
func (p *TaggedPeer) CTS(number uint32) *PendingSend {
	i, found := p.find(number)
	if !found {
		return nil
	}
	s := p.pending[i]
	if s.message != nil {
		s.message.phase = committed
	}
	p.pending = slices.Delete(p.pending, i, i+1)
	return s
}

// Offered is CTS for a message that has an Offer; otherwise it returns nil.
func (p *TaggedPeer) Offered(number uint32) *PendingSend {
	if i, found := p.find(number); found && p.pending[i].Offer != 0 {
		return p.CTS(number)
	}
	return nil
}

// find returns where a message is among those that are announced: they are there in the
// order of their numbers, which start anew after the last one.
func (p *TaggedPeer) find(number uint32) (i int, found bool) {
	return slices.BinarySearchFunc(p.pending, number, func(s *PendingSend, number uint32) int {
		return int(int32(s.Number - number))
	})
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
