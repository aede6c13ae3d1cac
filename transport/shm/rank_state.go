package shm

import (
	"sync/atomic"
	"unsafe"

	"github.com/chorale-go/chorale/transport/internal/progress"
)

const (
	rankStateLen    = 40 << 10 // bytes of a rank state
	callTextsMax    = 16       // call texts that a rank publishes
	callTextMax     = 496      // bytes of a call that its peers get to see
	stallsMax       = 16       // stall records of a rank
	terminationMax  = 3 << 10  // bytes of the text of a termination record
	revocationWords = 2 << 10  // of the last revocations of a rank
	reasonsMax      = 8        // different reasons of revocations that a rank publishes
)

// A rankState is what a rank publishes about itself. The rank alone writes to it;
// but peers wake it, clear what it sleeps for, and tell it to look at what they publish.
type rankState struct {
	status atomic.Uint64 // how far the rank has come, and what it sleeps for: see ordering.go
	futex  atomic.Uint32 // the word that it sleeps on
	core   atomic.Int32  // 1 + the core that it was on when it last looked
	closes atomic.Uint32 // 1: it sends and receives no more, and lingers until its messages have room
	told   atomic.Uint32 // how often a peer has terminated, or has revoked a communicator of this rank
	owner  atomic.Uint32 // the thread whose end the kernel marks here; 0 where it does not: see ordering.go
	_      [lineLen - 28]byte

	cma cmaProbe
	_   [lineLen - unsafe.Sizeof(cmaProbe{})]byte

	robust robustList // of owner
	_      [lineLen - unsafe.Sizeof(robustList{})]byte

	decisions [offersMax]atomic.Uint64 // of the rank's offers, by their places: see ordering.go

	termination terminationRecord
	calls       [callTextsMax]callText
	stalls      [stallsMax]stallRecord
	revocations revocationLog
}

var _ [rankStateLen - unsafe.Sizeof(rankState{})]byte

// A cmaProbe is a word in the rank's memory for peers to try cross-memory attach on.
type cmaProbe struct {
	pid        atomic.Int64
	descriptor atomic.Int64 // of the file through which the process has the rank's lock
	address    atomic.Uint64
	value      atomic.Uint64 // what the word holds; 0 until the rest is written
}

// A robustList is the list of robust futexes of a thread, as the kernel has it: the head, and
// one element. It lies in shared memory, which the system takes from no process that runs out
// of memory before that has ended.
type robustList struct {
	first   uintptr // the address of the element
	offset  int     // from the element to the futex word
	pending uintptr // of no use here
	element uintptr // the address of the head: the list ends
}

// A callText is the text of a call, for error messages. Frames carry its hash.
type callText struct {
	hash atomic.Uint32
	size uint32
	text [callTextMax]byte
}

// A stallRecord is a call in which the rank has waited for long.
type stallRecord struct {
	version  atomic.Uint32 // odd while the record is written
	context  atomic.Uint32
	sequence atomic.Uint32
	used     atomic.Uint32
	hash     atomic.Uint32
	_        [12]byte
}

// A terminationRecord is the termination notice of a rank.
type terminationRecord struct {
	mismatched int32  // the peer that was in another call; -1 if that was not the reason
	context    uint32 // of that call
	mine       uint32 // the call's number at this rank,
	theirs     uint32 // and at the peer
	mineEnd    uint32 // text[:mineEnd] is this rank's call,
	theirsEnd  uint32 // text[mineEnd:theirsEnd] the peer's,
	size       uint32 // and text[theirsEnd:size] the reason
	text       [terminationMax]byte
	_          [4]byte
}

// A revocationLog is the communicators that the rank has revoked: the last of them. A record
// is as long as the job has ranks: the communicator's number with the hash of the reason, and
// a bit for each rank that belongs to the communicator.
type revocationLog struct {
	count   atomic.Uint64 // of all
	_       [lineLen - 8]byte
	records [revocationWords]atomic.Uint64
	reasons [reasonsMax]reasonText
}

// A reasonText is what [progress.AppendRevocation] writes.
type reasonText struct {
	hash atomic.Uint32
	size uint32
	text [revocationMax]byte
}

// revocationMax is how long that is, in bytes, rounded up.
const revocationMax = progress.ReasonMax + 8

// hashOf is FNV-1a, the same in all processes, and never 0.
func hashOf(text string) uint32 {
	h := uint64(14695981039346656037)
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	return max(uint32(h^h>>32), 1)
}

// A callTable knows the hashes of the calls that this rank has made recently, and
// publishes their texts.
type callTable struct {
	state *rankState
	cache [32]struct { // by address: calls that differ in their root have texts of the same length
		text string
		hash uint32
	}
	next int // the published text that is replaced next
}

// hash returns the hash of a call's text. Calls that are repeated are the same
// string in memory, whose hash is cached.
func (t *callTable) hash(text string) uint32 {
	address := uintptr(unsafe.Pointer(unsafe.StringData(text)))
	c := &t.cache[uint32(address>>4)*0x9e3779b9>>16%uint32(len(t.cache))]
	if sameMemory(c.text, text) && c.hash != 0 {
		return c.hash
	}
	h := hashOf(text)
	t.publish(h, text)
	c.text, c.hash = text, h
	return h
}

func (t *callTable) publish(h uint32, text string) {
	for i := range t.state.calls {
		if t.state.calls[i].hash.Load() == h {
			return
		}
	}
	c := &t.state.calls[t.next]
	t.next = (t.next + 1) % callTextsMax
	for i := range t.cache {
		if t.cache[i].hash == c.hash.Load() {
			t.cache[i].hash = 0 // its text is no longer published
		}
	}
	invalidate(&c.hash)
	c.size = uint32(copy(c.text[:], text))
	c.hash.Store(h)
}

// sameMemory reports whether two strings are the same memory.
func sameMemory(a, b string) bool {
	return len(a) == len(b) && unsafe.StringData(a) == unsafe.StringData(b)
}

// call returns the text of a rank's call.
func (s *rankState) call(hash uint32) string {
	for i := range s.calls {
		c := &s.calls[i]
		if c.hash.Load() != hash {
			continue
		}
		n := min(c.size, callTextMax)
		text := string(c.text[:n])
		if loadFence(); c.hash.Load() == hash {
			return text
		}
	}
	return "a call of long ago"
}
