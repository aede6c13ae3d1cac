package shm

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/chorale-go/chorale/transport"
)

// A short message to several ranks is written once, into a slot of its sender
// that all of them read: a cast.
//
// A receiver knows in which order casts and the frames of its lane were sent:
// each frame that begins a message says how many casts went before it.
const (
	castDepth = 16 // slots of a rank
	castMost  = inlineMax - 16
	castRanks = 64 // of a job in which there are casts: their readers are one word
	castMin   = 3  // receivers; less are as well served one by one
)

// A caster writes a rank's casts.
type caster struct {
	slots unsafe.Pointer // nil where there are none
	tail  uint64         // casts written
	to    [castDepth]uint64
}

func castSlot(slots unsafe.Pointer, number uint64) *slot {
	return (*slot)(unsafe.Add(slots, number%castDepth*lineLen))
}

// The body of a cast begins with its readers and its number. Ranks that are not
// among them read these two words too, and while another cast is written there:
// they are sure of both if the slot's turn is the same before and after. Only
// atomic reads stay between those two on every processor, and only atomic writes
// behind the one that takes the turn back.

func (s *slot) readers() *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(&s.body[0])) }
func (s *slot) number() *atomic.Uint64  { return (*atomic.Uint64)(unsafe.Pointer(&s.body[8])) }
func (s *slot) castBytes() []byte {
	return s.body[16 : 16+min(s.size, castMost) : 16+min(s.size, castMost)]
}

// cast sends a message to several ranks at once, if that can be done now.
func (e *Endpoint) cast(v label, s *transport.Send) bool {
	c := &e.caster
	if len(s.Data) > castMost || c.slots == nil || !e.hasCastRoom() {
		return false
	}
	var to uint64
	for _, rank := range s.To {
		if e.links[rank].err != nil {
			return false
		}
		to |= 1 << rank
	}
	if bits.OnesCount64(to) != len(s.To) {
		return false // a rank that is named twice gets two messages
	}
	slot := castSlot(c.slots, c.tail)
	retract(&slot.turn)
	slot.size = uint32(len(s.Data))
	slot.label(v, 0)
	write(slot.readers(), to)
	write(slot.number(), c.tail+1)
	copy(slot.body[16:], s.Data)
	c.to[c.tail%castDepth] = to
	c.tail++
	publish(&slot.turn, turn(uint32(c.tail), cast))
	for _, rank := range s.To {
		e.links[rank].tell(wrote)
	}
	return true
}

// hasCastRoom reports whether all readers of the oldest cast have taken it.
func (e *Endpoint) hasCastRoom() bool {
	c := &e.caster
	if c.tail < castDepth {
		return true
	}
	oldest := c.tail - castDepth + 1
	for to := c.to[c.tail%castDepth]; to != 0; to &= to - 1 {
		l := &e.links[bits.TrailingZeros64(to)]
		if l.err != nil {
			continue
		}
		if l.heard < oldest {
			if l.heard = l.out.heard.Load(); l.heard < oldest {
				return false
			}
		}
	}
	return true
}

// nextCast returns the peer's next cast to this rank, or nil. Those that are not
// for this rank are left out; a slot that holds a later one than it should held
// such a one.
func (l *link) nextCast() *slot {
	for {
		s := castSlot(l.casts, l.castHead)
		t := s.turn.Load()
		if t == 0 {
			return nil
		}
		number, to := s.number().Load(), s.readers().Load()
		if s.turn.Load() != t {
			continue // it is being written
		}
		switch {
		case number <= l.castHead:
			return nil
		case (number-l.castHead-1)%castDepth != 0: // another slot's
			l.nonsense()
			return nil
		case number > l.castHead+1:
			l.castHead = number - castDepth
		case to>>l.e.cfg.Rank&1 != 0:
			return s
		default:
			l.castHead++
		}
	}
}

// precedes reports whether the frame at the head of the lane was sent before the
// next cast.
func (l *link) precedes(s *slot, k kind) bool {
	return !k.begins() || int32(uint32(s.call>>32)-uint32(l.castHead)) <= 0
}

// takeCast lets go of a cast.
func (l *link) takeCast() {
	l.castHead++
	l.in.heard.Store(l.castHead)
	l.tell(tookOne)
	l.e.moved = true
}
