//go:build !amd64

package shm

import "sync/atomic"

// storeRelease stores a word after everything that was stored before it. On arm64
// and elsewhere that takes an instruction of its own (STLR), which an atomic store
// is.
func storeRelease(word *atomic.Uint32, value uint32) { word.Store(value) }

// storeRelease64 stores a word of eight bytes after everything that was stored before it.
func storeRelease64(word *atomic.Uint64, value uint64) { word.Store(value) }

// invalidate stores 0 before everything that is stored after it. Only a
// read-modify-write keeps later stores behind it.
func invalidate(word *atomic.Uint32) { word.Swap(0) }
