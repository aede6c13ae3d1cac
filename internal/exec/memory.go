package exec

import (
	"sync/atomic"
	"unsafe"
)

// A Memory is the memory that plans compute in: scratch, received bytes that are not
// combined yet, padded parts, copies of the input. Nothing in it outlives a run, and
// it grows to what the largest run has needed, and 1/16 more. The zero Memory is
// ready for use, by one run at a time.
type Memory struct {
	// Held counts the bytes of the Memory if it is not nil.
	Held *atomic.Int64
	// Allocator is asked for the memory first if it is not nil.
	Allocator Allocator
	bytes     []byte
	allocated bool // by the Allocator
}

// An Allocator allocates memory that suits the endpoint best.
type Allocator interface {
	// Wanted reports whether it allocates.
	Wanted() bool
	// Alloc returns n bytes, at least one, that begin on a cache line, or nil if it has none.
	Alloc(n int) []byte
	// Free gives them back.
	Free([]byte)
}

const cacheLine = 64

// align returns n rounded up to whole cache lines.
func align(n int) int { return (n + cacheLine - 1) &^ (cacheLine - 1) }

// AtLeast returns at least n bytes, aligned for any element type. Their contents are
// those that the last run has left.
func (m *Memory) AtLeast(n int) []byte {
	if n > len(m.bytes) || !m.allocated && m.Allocator != nil && m.Allocator.Wanted() {
		m.grow(max(n, 1))
	}
	return m.bytes
}

// grow replaces the memory by one of at least n bytes. The slack saves calls that
// become longer bit by bit a new memory each.
func (m *Memory) grow(n int) {
	if n > 1<<16 {
		n += n / 16
	}
	n = align(n)
	m.Free()
	m.count(n)
	if m.Allocator != nil && m.Allocator.Wanted() {
		m.allocated = true // or was asked for: once is enough
		if m.bytes = m.Allocator.Alloc(n); m.bytes != nil {
			return
		}
	}
	words := make([]uint64, n/8)
	m.bytes = unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), n)
}

// Free drops the memory. A later run allocates a new one.
func (m *Memory) Free() {
	m.count(-len(m.bytes))
	if m.allocated && m.bytes != nil {
		m.Allocator.Free(m.bytes)
	}
	m.bytes = nil
}

func (m *Memory) count(n int) {
	if m.Held != nil {
		m.Held.Add(int64(n))
	}
}
