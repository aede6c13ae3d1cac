package shm

import (
	"math"
	"sync/atomic"
	"unsafe"
)

// A kind says what a frame is.
type kind uint8

const (
	data  kind = 1 + iota // a message, in the slot
	boxed                 // the beginning of a message, in a box
	lent                  // a message in its sender's memory
	cast                  // a message to several ranks, in a slot that all of them read
	more                  // a message goes on, in a box
	rest                  // the rest of a message, in its sender's memory

	post       // a letter: its type and contents
	postBoxed  // the same, in a box
	offer      // a letter that the sender keeps until it is granted: its type
	offerBoxed // the same, in a box
	withdraw   // the letter of that number is offered no more
	grant      // the receiver takes the letter of that number
	part       // contents of the letter of that number, in a box
	taken      // letters that cost so much are out of the mailbox
)

// inlineMax is how many bytes travel in one line with their header.
const inlineMax = 40

// A slot is one line with one frame. The n-th frame of a lane is there when
// turn says so; what else the slot holds was written before.
type slot struct {
	turn     atomic.Uint32 // n, 24 bits, and the kind
	size     uint32        // bytes of contents, here or in the box
	context  uint32
	sequence uint32 // of the call; of a letter, the length of its type, which begins the contents
	call     uint64 // stands for the call's text, 32 bits, behind the casts sent before; of a letter, its tag
	body     [inlineMax]byte
}

// A parcel is the body of a slot whose contents are elsewhere.
type parcel struct {
	total   uint64 // bytes of the whole
	offset  uint64 // where in it the contents begin
	address uint64 // in the sender's memory
	box     uint32 // of the sender
	number  uint32 // of the frame that the message began with, or of the letter
}

// totalMost is more than the memory of any machine has bytes: a total beyond it is
// no message's.
const totalMost = min(math.MaxInt, 1<<47)

func (s *slot) parcel() *parcel { return (*parcel)(unsafe.Pointer(&s.body)) }

func turn(number uint32, k kind) uint32 { return number<<8 | uint32(k) }

// begins reports whether a frame of this kind begins a message of a step.
func (k kind) begins() bool { return k <= cast }

// before compares two numbers of calls, which may have wrapped around.
func before(a, b uint32) bool { return int32(a-b) < 0 }
