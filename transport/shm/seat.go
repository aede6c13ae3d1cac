package shm

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/chorale-go/chorale/transport"
)

// A seat is what a rank says of itself. It alone writes there, but for who wakes
// it.
type seat struct {
	status atomic.Uint64 // how far it has come, and what it sleeps for
	bell   atomic.Uint32 // where it sleeps
	core   atomic.Int32  // 1 + the core on which it was when it last looked
	_      [lineLen - 16]byte

	pid     atomic.Int64
	address atomic.Uint64 // of a word in its memory, for others to try whether they can read it
	word    atomic.Uint64 // what is there
	_       [lineLen - 24]byte

	last  record
	calls [callsMost]callText
	says  [saysMost]saying
}

// A rank's status. Its lowest byte is its stage; while it sleeps, the rest is
// what for, so that whoever brings something else lets it sleep.
const (
	absent uint64 = iota
	joined
	left     // it has closed its endpoint
	given    // it has given up
	stageAll = 0xff

	forAcks uint64 = 1 << 8 // until what it has sent is taken
	forMail uint64 = 1 << 9 // for a message of any rank
	byRank         = 32     // shift: 1 + the one rank whose message it sleeps for
	asleep         = ^uint64(0xff)
)

const (
	callsMost = 16
	callMost  = 496 // bytes of a call that its peers get to see
	saysMost  = 16
	lastMost  = 3 << 10
)

// A callText is the text of a call, for reports. Frames carry its hash.
type callText struct {
	hash atomic.Uint32
	size uint32
	text [callMost]byte
}

// A saying is the call in which a rank has waited for long.
type saying struct {
	version  atomic.Uint32 // odd while it is written
	context  atomic.Uint32
	sequence atomic.Uint32
	known    atomic.Uint32
	call     atomic.Uint32
	_        [12]byte
}

// A record is a rank's last word. It is written before its status says so.
type record struct {
	peer    int32 // whose call did not match; -1 if it was not that
	context uint32
	mine    uint32 // the sequences of that
	theirs  uint32
	cut     uint32 // where in the text the peer's call begins,
	end     uint32 // and where it ends
	size    uint32
	text    [lastMost]byte
	_       [4]byte
}

// hashOf is FNV-1a, the same in all processes, and never 0.
func hashOf(text string) uint32 {
	h := uint64(14695981039346656037)
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	return max(uint32(h^h>>32), 1)
}

// A register knows the hashes of the calls that a rank has made lately, and
// keeps their texts in its seat.
type register struct {
	seat   *seat
	recent [32]struct { // by address: calls that differ in their root have texts of the same length
		text string
		hash uint32
	}
	next int // the text in the seat that is replaced next
}

// hash returns what stands for a call. Calls that are made again and again are
// the same string in memory.
func (r *register) hash(text string) uint32 {
	address := uintptr(unsafe.Pointer(unsafe.StringData(text)))
	c := &r.recent[uint32(address>>4)*0x9e3779b9>>16%uint32(len(r.recent))]
	if same(c.text, text) && c.hash != 0 {
		return c.hash
	}
	h := hashOf(text)
	r.keep(h, text)
	c.text, c.hash = text, h
	return h
}

func (r *register) keep(h uint32, text string) {
	for i := range r.seat.calls {
		if r.seat.calls[i].hash.Load() == h {
			return
		}
	}
	c := &r.seat.calls[r.next]
	r.next = (r.next + 1) % callsMost
	for i := range r.recent {
		if r.recent[i].hash == c.hash.Load() {
			r.recent[i].hash = 0 // its text will not be there any more
		}
	}
	c.hash.Store(0)
	c.size = uint32(copy(c.text[:], text))
	c.hash.Store(h)
}

// call returns the text of a rank's call.
func (s *seat) call(h uint32) string {
	for i := range s.calls {
		c := &s.calls[i]
		if c.hash.Load() != h {
			continue
		}
		text := string(c.text[:min(c.size, callMost)])
		if c.hash.Load() == h {
			return text
		}
	}
	return "a call of long ago"
}

// say notes that the rank waits in a call. The place of a call that it does not
// wait in any more is free for another.
func (s *seat) say(sig *transport.Signature, h uint32, waits func(context uint32) bool) {
	var free *saying
	for i := range s.says {
		w := &s.says[i]
		if w.known.Load() != 0 && w.context.Load() == sig.Context {
			free = w
			break
		}
		if free == nil && (w.known.Load() == 0 || !waits(w.context.Load())) {
			free = w
		}
	}
	if free == nil {
		return
	}
	free.version.Add(1)
	free.context.Store(sig.Context)
	free.sequence.Store(sig.Sequence)
	free.call.Store(h)
	free.known.Store(1)
	free.version.Add(1)
}

// said returns the call in which the rank has last waited for long.
func (s *seat) said(context uint32) (sequence, call uint32, ok bool) {
	for i := range s.says {
		w := &s.says[i]
		for range 100 {
			v := w.version.Load()
			known := w.known.Load() != 0 && w.context.Load() == context
			sequence, call = w.sequence.Load(), w.call.Load()
			if v%2 == 0 && w.version.Load() == v {
				if known {
					return sequence, call, true
				}
				break
			}
			runtime.Gosched()
		}
	}
	return 0, 0, false
}

func (s *seat) stage() uint64 { return s.status.Load() & stageAll }

// wake wakes the rank if it still sleeps for what w says. One of those who want
// to wakes it.
func (s *seat) wake(w uint64) {
	if w&asleep != 0 && s.status.CompareAndSwap(w, w&stageAll) {
		s.ring()
	}
}

func (s *seat) ring() {
	s.bell.Add(1)
	futexWake(bellOf(s))
}

func bellOf(s *seat) *uint32 { return (*uint32)(unsafe.Pointer(&s.bell)) }

// same reports whether two texts are the same memory.
func same(a, b string) bool { return len(a) == len(b) && unsafe.StringData(a) == unsafe.StringData(b) }
