package shm

import (
	"sync/atomic"
	"unsafe"
)

// storeRelease stores a word after everything that was stored before it.
//
// On amd64 all stores become visible in program order, so that a plain store is a
// release. An atomic store (XCHG) would wait until this core owns the cache line; a
// plain one leaves that to the store buffer, where several wait at once. The Go
// memory model promises nothing for plain stores. The compiler keeps them in program
// order nevertheless, because each takes the memory state that the one before
// leaves; TestTheCompilerKeepsStoresBeforeTheirPublication reads its output.
func storeRelease(word *atomic.Uint32, value uint32) {
	*(*uint32)(unsafe.Pointer(word)) = value
}

// storeRelease64 stores a word of eight bytes after everything that was stored before it.
func storeRelease64(word *atomic.Uint64, value uint64) {
	*(*uint64)(unsafe.Pointer(word)) = value
}

// storeFenced stores a word before everything that is loaded or stored after it.
func storeFenced(word *atomic.Uint64, value uint64) { word.Store(value) }

// loadFence keeps what was loaded before it before the atomic loads that follow. On amd64
// all loads are in order.
func loadFence() {}

// invalidate stores 0 before everything that is stored after it.
func invalidate(word *atomic.Uint32) { storeRelease(word, 0) }
