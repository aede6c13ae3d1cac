package shm

import (
	"sync/atomic"
	"unsafe"
)

// publish stores a word that says that what was written before is there. On this
// processor stores become visible in their order, so that a plain one will do. An
// atomic one waits until the line is here, which several could do at once.
func publish(word *atomic.Uint32, value uint32) {
	*(*uint32)(unsafe.Pointer(word)) = value
}

// retract takes a word back before what it stands for is written anew.
func retract(word *atomic.Uint32) { publish(word, 0) }

// write stores a word after what was stored before.
func write(word *atomic.Uint64, value uint64) { *(*uint64)(unsafe.Pointer(word)) = value }
