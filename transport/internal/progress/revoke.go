package progress

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
)

// This file has how a communicator fails while the others of the endpoint go on: see
// [transport.Revoker].

// communicators are what an engine knows of them.
type communicators struct {
	known map[uint32]*communicator // whose members are set, or that are revoked
	gone  []loss                   // in the order in which this rank has heard of them
	early map[uint32]*transport.PeerError
	heard func(communicator uint32, why *transport.PeerError)
}

// A communicator is what is known of one of them.
type communicator struct {
	members []int                // nil for all ranks
	revoked *transport.PeerError // what peers are told; nil while it goes on
	cause   error                // what operations of this rank return
	checked int                  // losses of which it is known that they are of no member
}

// A loss is a rank that is lost, or has given up.
type loss struct {
	rank int
	err  error
}

// earlyMax is how many communicators peers may revoke of which this rank does not know yet.
const earlyMax = 16 << 10

// OnRevoke has f called, without the lock and in no particular order, for every communicator
// that is revoked from now on.
func (e *Engine) OnRevoke(f func(communicator uint32, why *transport.PeerError)) {
	e.Lock()
	defer e.Unlock()
	e.communicators.heard = f
}

// SetMembers implements [transport.Revoker]. The members of a communicator that is revoked
// are kept: those to which a link comes up later are told.
func (e *Engine) SetMembers(communicator uint32, ranks []int) {
	e.Lock()
	defer e.Unlock()
	c := &e.communicators
	switch k := c.known[communicator]; {
	case ranks != nil:
		c.know(communicator).members = ranks
		_ = e.revokedIn(communicator << transport.ContextBits)
	case k != nil && k.revoked == nil:
		delete(c.known, communicator)
	}
}

// know returns what is known of a communicator, to be changed.
func (c *communicators) know(number uint32) *communicator {
	k := c.known[number]
	if k == nil {
		if c.known == nil {
			c.known = map[uint32]*communicator{}
		}
		k = &communicator{}
		c.known[number] = k
	}
	return k
}

// members returns the ranks of a communicator, or nil for all.
func (c *communicators) members(number uint32) []int {
	if k := c.known[number]; k != nil {
		return k.members
	}
	return nil
}

// has reports whether a rank belongs to a communicator.
func (c *communicators) has(number uint32, rank int) bool {
	members := c.members(number)
	return members == nil || slices.Contains(members, rank)
}

// IsMember reports whether a rank belongs to the communicator of a context.
func (e *Engine) IsMember(context uint32, rank int) bool {
	return e.communicators.has(transport.Communicator(context), rank)
}

// Revoke implements [transport.Revoker].
func (e *Engine) Revoke(communicator uint32, why error) {
	e.Lock()
	defer e.Unlock()
	e.RevokeLocked(communicator, why)
}

// Revoked implements [transport.Revoker].
func (e *Engine) Revoked(communicator uint32) error {
	e.Lock()
	defer e.Unlock()
	return e.ErrIn(communicator << transport.ContextBits)
}

// revokedIn returns why operations in a context fail, or nil.
func (e *Engine) revokedIn(context uint32) error {
	if !e.failing || transport.Resilient(context) {
		return nil
	}
	return e.whyRevoked(transport.Communicator(context))
}

func (e *Engine) whyRevoked(number uint32) error {
	c := &e.communicators
	k := c.known[number]
	if k == nil || k.revoked == nil && (k.checked < len(c.gone) || len(c.early) > 0) {
		e.revokeLate(number, k)
		k = c.known[number]
	}
	if k == nil {
		return nil
	}
	return k.cause
}

// revokeLate revokes a communicator of which this rank has known nothing when it was
// revoked, or when one of its ranks was lost.
func (e *Engine) revokeLate(number uint32, k *communicator) {
	c := &e.communicators
	if why := c.early[number]; why != nil {
		delete(c.early, number)
		e.RevokeLocked(number, why)
		return
	}
	checked := 0
	if k != nil {
		checked = k.checked
	}
	for _, l := range c.gone[checked:] {
		if c.has(number, l.rank) {
			e.revokeFor(number, l.rank, l.err)
			return
		}
	}
	if k != nil {
		k.checked = len(c.gone)
	}
}

// IsRevoked implements [match.Steps]. It revokes nothing: a message may arrive before the
// members of its communicator are set.
func (e *Engine) IsRevoked(context uint32) bool {
	if !e.failing || transport.Resilient(context) {
		return false
	}
	k := e.communicators.known[transport.Communicator(context)]
	return k != nil && k.revoked != nil
}

// RevokeLocked is Revoke for a caller that has the lock.
func (e *Engine) RevokeLocked(communicator uint32, why error) {
	said, ok := why.(*transport.PeerError)
	if !ok {
		said = &transport.PeerError{Peer: e.Rank, Err: transport.ErrAborted, Reason: why.Error()}
	}
	e.revoke(communicator, why, said)
}

// revoke revokes a communicator: operations of this rank return why, and the other ranks
// are told what is said.
func (e *Engine) revoke(number uint32, why error, said *transport.PeerError) {
	c := &e.communicators
	switch k := c.known[number]; {
	case e.end.err != nil || k != nil && k.revoked != nil:
		return
	case e.together:
		e.Fail(why)
		return
	}
	k := c.know(number)
	k.cause, k.revoked, e.failing = why, said, true
	delete(c.early, number)
	for _, o := range e.ops {
		if context, ok := o.context(); ok && Revokes(number, context) {
			o.Finish(why)
		}
	}
	e.transport.Revoke(number, said)
	e.finishEach(why, func(m *Message) bool { return Revokes(number, m.pattern.Context) })
	for _, t := range e.tagged.Revoke(func(context uint32) bool { return Revokes(number, context) }) {
		if !t.Rendezvous {
			e.received(t)
		}
	}
	if f := c.heard; f != nil {
		e.GoUnlocked(func() { f(number, said) })
	}
	e.Interrupt()
}

// Revokes reports whether operations in a context fail when a communicator is revoked.
func Revokes(communicator, context uint32) bool {
	return transport.Communicator(context) == communicator && !transport.Resilient(context)
}

// context returns the context of the operation, if it has one of its own.
func (o *Op) context() (context uint32, ok bool) {
	switch o.kind {
	case stepOp:
		return o.Context, true
	case probeOp:
		return o.subject.pattern.Context, true
	}
	return 0, false
}

// losePeer notes that a rank has gone, and revokes the communicators that it belongs to,
// unless it has left.
func (e *Engine) losePeer(peer int, err error) {
	c := &e.communicators
	if e.together || errors.Is(err, transport.ErrLeft) || e.end.err != nil ||
		slices.ContainsFunc(c.gone, func(l loss) bool { return l.rank == peer }) {
		return
	}
	c.gone, e.failing = append(c.gone, loss{rank: peer, err: err}), true
	e.RevokeShared(peer, err)
}

// RevokeShared revokes the communicators that a peer belongs to and this rank knows or uses:
// because the peer has gone, or because the transport cannot tell which of them the peer has
// revoked.
func (e *Engine) RevokeShared(peer int, err error) {
	for _, number := range e.inUse() {
		if e.communicators.has(number, peer) {
			e.revokeFor(number, peer, err)
		}
	}
}

// revokeFor revokes a communicator because of a peer that has gone.
func (e *Engine) revokeFor(number uint32, peer int, err error) {
	var said *transport.PeerError
	if !errors.As(err, &said) { // as of a mismatch, which the peer has found
		said = &transport.PeerError{Peer: peer, Err: transport.ErrAborted, Reason: err.Error()}
	}
	e.revoke(number, err, said)
}

// inUse returns the numbers of the communicators that this rank knows of, or in which
// something is in progress.
func (e *Engine) inUse() []uint32 {
	numbers := []uint32{0}
	for number := range e.communicators.known {
		numbers = append(numbers, number)
	}
	for _, o := range e.ops {
		if context, ok := o.context(); ok {
			numbers = append(numbers, transport.Communicator(context))
		}
	}
	for _, m := range e.messages.inProgress {
		numbers = append(numbers, transport.Communicator(m.pattern.Context))
	}
	return numbers
}

// FailStep revokes the communicator of a step because of an error, as of a peer that it
// waits for and that has left.
func (e *Engine) FailStep(s *match.Step, err error) {
	e.RevokeLocked(transport.Communicator(s.Context), err)
}

// Told reports whether a peer has to be told that a communicator is revoked.
func (e *Engine) Told(communicator uint32, peer int) bool {
	return peer != e.Rank && e.communicators.has(communicator, peer)
}

// Revocations are the communicators that are revoked and of which a peer has to be told
// that, with what it is told.
func (e *Engine) Revocations(peer int) iter.Seq2[uint32, *transport.PeerError] {
	return func(yield func(uint32, *transport.PeerError) bool) {
		for number, k := range e.communicators.known {
			if k.revoked != nil && e.Told(number, peer) && !yield(number, k.revoked) {
				return
			}
		}
	}
}

// The kinds of errors in a revocation.
var revocationErrors = []error{transport.ErrRevoked, transport.ErrAborted, transport.ErrLost, transport.ErrLeft}

// AppendRevocation appends what peers are told when a communicator is revoked: kind, rank
// and reason.
func AppendRevocation(b []byte, why *transport.PeerError) []byte {
	kind := slices.IndexFunc(revocationErrors, func(err error) bool { return errors.Is(why.Err, err) })
	b = append(b, byte(max(kind, 0)))
	b = binary.LittleEndian.AppendUint32(b, uint32(why.Peer))
	return append(b, why.Reason[:min(len(why.Reason), ReasonMax)]...)
}

// HearRevocation takes what a peer has told, and revokes the communicator here. It refuses
// what no rank would send.
//
// A rank that does not know the communicator yet revokes it when it does. It could not tell
// the members: the members of several communicators may share a number, where each rank
// belongs to one of them.
func (e *Engine) HearRevocation(communicator uint32, b []byte) error {
	if len(b) < 5 || len(b) > 5+ReasonMax || int(b[0]) >= len(revocationErrors) {
		return fmt.Errorf("a revocation of %d bytes", len(b))
	}
	rank := binary.LittleEndian.Uint32(b[1:])
	switch {
	case uint64(rank) >= uint64(e.Size):
		return fmt.Errorf("a revocation because of rank %d of %d", rank, e.Size)
	case communicator != transport.Communicator(communicator<<transport.ContextBits):
		return fmt.Errorf("a revocation of communicator %d", communicator)
	}
	c := &e.communicators
	why := &transport.PeerError{Peer: int(rank), Err: revocationErrors[b[0]], Reason: string(b[5:])}
	if e.together || slices.Contains(e.inUse(), communicator) {
		e.RevokeLocked(communicator, why)
		return nil
	}
	if c.early[communicator] == nil && len(c.early) >= earlyMax {
		return fmt.Errorf("revocations of %d communicators that this rank does not know", earlyMax+1)
	}
	if c.early == nil {
		c.early = map[uint32]*transport.PeerError{}
	}
	c.early[communicator], e.failing = why, true
	return nil
}
