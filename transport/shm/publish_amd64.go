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
