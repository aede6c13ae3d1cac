package progress

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/chorale-go/chorale/transport"
)

// A Notice is a termination notice: what a rank tells its peers when its part in the
// job ends.
type Notice struct {
	Left     bool                     // it closed its endpoint; otherwise it gave up
	Reason   string                   // may be empty
	Mismatch *transport.MismatchError // it gave up because a peer was in another call; may be nil
}

// Notice returns the termination notice of this endpoint, whose part has ended.
func (e *Engine) Notice() (n Notice) {
	if e.end.err == transport.ErrClosed {
		return e.LeavingNotice()
	}
	errors.As(e.end.err, &n.Mismatch)
	n.Reason = e.end.err.Error()
	return n
}

// LeavingNotice returns the termination notice of an endpoint that leaves.
func (e *Engine) LeavingNotice() Notice { return Notice{Left: true, Reason: e.leftReason()} }

// A NoticeKind is how a termination notice is sent.
type NoticeKind uint8

const (
	LeftNotice     NoticeKind = iota // the text is the last call
	AbortNotice                      // the text says why
	MismatchNotice                   // to a peer that was in another call: the text has the number of one call, the length of the other, and both
)

// ReasonMax is how many bytes of a reason are sent; more is cut off.
const ReasonMax = 1 << 10

// To returns how the notice is sent to a peer. The number and the context of call go with
// the kind and the text.
func (n *Notice) To(peer int) (kind NoticeKind, call transport.Signature, text string) {
	if m := n.Mismatch; m != nil && m.Peer == peer {
		b := binary.LittleEndian.AppendUint32(nil, m.Theirs.Sequence)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(m.Mine.Call)))
		return MismatchNotice, m.Mine, string(append(append(b, m.Mine.Call...), m.Theirs.Call...))
	}
	kind = AbortNotice
	if n.Left {
		kind = LeftNotice
	}
	return kind, call, n.Reason[:min(len(n.Reason), ReasonMax)]
}

// ParseNotice returns the notice that To has made at a peer for this rank. It refuses what
// no rank would send.
func ParseNotice(kind NoticeKind, call transport.Signature, text []byte, rank, peer int) (n Notice, err error) {
	if kind != MismatchNotice {
		return Notice{Left: kind == LeftNotice, Reason: string(text)}, nil
	}
	if len(text) < 8 {
		return n, fmt.Errorf("a mismatch of %d bytes", len(text))
	}
	sequence, length := binary.LittleEndian.Uint32(text), binary.LittleEndian.Uint32(text[4:])
	calls := text[8:]
	if int64(length) > int64(len(calls)) {
		return n, fmt.Errorf("a mismatch with a call of %d bytes", length)
	}
	theirs := call
	call.Call, theirs.Call, theirs.Sequence = string(calls[:length]), string(calls[length:]), sequence
	n.Mismatch = &transport.MismatchError{Rank: peer, Peer: rank, Mine: call, Theirs: theirs}
	return n, nil
}

// PeerError returns what the termination notice of a peer means to this rank.
func (n *Notice) PeerError(rank, peer int) error {
	switch m := n.Mismatch; {
	case m != nil && m.Peer == rank:
		return &transport.MismatchError{Rank: rank, Peer: peer, Mine: m.Theirs, Theirs: m.Mine}
	case n.Left:
		return &transport.PeerError{Peer: peer, Err: transport.ErrLeft, Reason: n.Reason}
	}
	return &transport.PeerError{Peer: peer, Err: transport.ErrAborted, Reason: n.Reason}
}

// HearMismatch fails the endpoint if err, the error of a peer that has gone, says
// that the peer was in another call than a step in progress here.
func (e *Engine) HearMismatch(err error) {
	var m *transport.MismatchError
	if !errors.As(err, &m) {
		return
	}
	if s := e.StepIn(m.Mine.Context); s != nil && s.Signature == m.Mine {
		e.Fail(m)
	}
}

// Unreceived is the error of a rank that leaves without having received a message.
func (e *Engine) Unreceived(peer int, theirs transport.Signature) error {
	return &transport.UnreceivedError{Rank: e.Rank, Peer: peer, Mine: e.end.last, Theirs: theirs}
}

// UnreceivedTagged is the error of a rank that leaves without having received a tagged
// message, or nil.
func (e *Engine) UnreceivedTagged() error {
	m := e.tagged.FirstUnreceived()
	if m == nil || e.Failed() {
		return nil
	}
	info := m.MessageInfo
	return &transport.UnreceivedError{Rank: e.Rank, Peer: m.From, Tagged: &info}
}

// AllGone returns why no tagged message comes any more from any rank in a context, or nil:
// a rank of the communicator is lost or gave up, or all others have left. GoneErr returns
// why a peer has gone, or nil.
func (e *Engine) AllGone(context uint32, goneErr func(peer int) error) error {
	members := e.communicators.members(transport.Communicator(context))
	size, own := e.Size, e.Rank
	if members != nil {
		size, own = len(members), slices.Index(members, e.Rank)
	}
	next, stays := -1, size == 1 // next is the first of the others
	for i := 1; i < size; i++ {
		peer := (own + i) % size
		if members != nil {
			peer = members[peer]
		}
		if next < 0 {
			next = peer
		}
		switch err := goneErr(peer); {
		case err == nil:
			stays = true
		case !errors.Is(err, transport.ErrLeft):
			return err
		}
	}
	if stays {
		return nil
	}
	return &transport.PeerError{Peer: next, Err: transport.ErrAllLeft}
}
