//go:build !amd64

package shm

import "sync/atomic"

// The processors of this file reorder plain accesses. The Go memory model says how
// those are ordered around atomic ones as long as there is no data race. Three
// functions promise more, and are right on arm64, because there an atomic store is
// STLR, an atomic load LDAR, and a read-modify-write ends with a store-release:
//
//   - Every access stays before an STLR that follows it.
//   - Every access stays behind an LDAR that precedes it.
//   - An LDAR stays behind an STLR that precedes it, whatever their words are.
//
// Docs/memory-ordering.md goes through every word on which ranks rely. TestFences reads
// the compiler's output.

// storeRelease stores a word after everything that was stored before it.
func storeRelease(word *atomic.Uint32, value uint32) { word.Store(value) }

// storeRelease64 stores a word of eight bytes after everything that was stored before it.
func storeRelease64(word *atomic.Uint64, value uint64) { word.Store(value) }

// storeFenced stores a word before everything that is loaded or stored after it. A
// read-modify-write would not do: its store may be later than plain stores behind it,
// which its load alone precedes. So the load here follows the store.
func storeFenced(word *atomic.Uint64, value uint64) {
	word.Store(value)
	_ = word.Load()
}

// invalidate stores 0 before everything that is stored after it, as storeFenced does.
func invalidate(word *atomic.Uint32) {
	word.Store(0)
	_ = word.Load()
}

// loadFence keeps what was loaded before it before the atomic loads that follow. An atomic
// load alone does not keep earlier loads back.
func loadFence() {
	var word atomic.Uint32
	word.Add(1)
}
