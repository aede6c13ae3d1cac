package shm

import (
	"math/bits"
	"unsafe"

	"github.com/chorale-go/chorale/transport/internal/match"
	"github.com/chorale-go/chorale/transport/internal/progress"
)

// The announcement of a long tagged message offers it to its receiver, if that can read it
// in the memory of its sender: it says where. So the message is there after the
// announcement and one copy. A receiver must not read a message that its sender has
// withdrawn, and both may want to do so at the same time: rankState.decide decides.

// offers are those of a rank.
type offers struct {
	made uint64
	open uint64 // a bit for each place
}

// next returns the next offer, or 0 if too many are open. The lowest places are preferred,
// because their words are in the receiver's cache.
func (o *offers) next() offer {
	if o.open == 1<<offersMax-1 {
		return 0
	}
	place := bits.TrailingZeros64(^o.open)
	o.open |= 1 << place
	o.made++
	return offer(o.made*offersMax + uint64(place))
}

// end ends the offer of a message that has one.
func (o *offers) end(s *progress.PendingSend) {
	if s.Offer != 0 {
		o.open &^= 1 << (s.Offer % offersMax)
		s.Offer = 0
	}
}

// offer offers a message to the peer if that can take it.
func (l *link) offer(s *progress.PendingSend) {
	if len(s.Data) < taggedRemoteMin || l.state.lifecycle() != joined {
		return
	}
	if _, shared := l.e.place(s.Data); !shared {
		if !l.canReadPeer() {
			return
		}
		l.e.out.promoter.note(s.Data)
	}
	s.Offer = uint64(l.e.out.offers.next())
}

// address returns where the receiver of an offer finds a message.
func (e *Endpoint) address(message []byte) uint64 {
	if place, shared := e.place(message); shared {
		return uint64(place) | inArena
	}
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(message))))
}

// isClaimed implements [progress.TaggedPeer.Claimed].
func (l *link) isClaimed(s *progress.PendingSend) bool { return !l.e.state.decide(offer(s.Offer)) }

// takeOffered takes a message that the peer has offered.
func (l *link) takeOffered(m *match.Tagged) {
	if !l.state.decide(offer(m.Offer.ID)) {
		m.Done(match.ErrWithdrawn)
		return
	}
	l.fetch(m, m.Offer.Address, m.Offer.Shared)
}

// endOffer returns the message of a number that the peer has taken, or could not read, or
// nil if there is no offer of that number.
func (l *link) endOffer(number uint32) *progress.PendingSend {
	s := l.tagged.Offered(number)
	if s != nil {
		l.e.out.offers.end(s)
	}
	return s
}
