package transport

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"unsafe"
)

// An Allocator has memory for messages. Where ranks share memory, a rank reads a message
// that lies in another's allocated memory where it lies: one copy or none, and no system
// call. Elsewhere allocated memory is like any other. All methods may be called at any
// time, by any number of goroutines.
type Allocator interface {
	// Alloc returns n bytes, all zero, that begin on a page of 4 KiB of their own. Place
	// names them to Attach. The memory is there until Free; an access to it afterwards ends
	// the program, or meets the data of others. It survives Close, after which Alloc
	// returns [ErrClosed]. An error says what is lacking; nothing else changes then.
	Alloc(n int) (memory []byte, place uint64, err error)

	// Free gives memory back that Alloc has returned; only its first byte counts, and no
	// bytes are nothing to free. No operation in progress uses it. Any other memory, and
	// memory that was freed before, is an [ErrNotAllocated]. Free may follow Close.
	Free(memory []byte) error

	// Attach returns the first n bytes of another rank's memory, by the place that the
	// rank's Alloc has returned. The rank does not free it while it is used. It survives
	// the end of the other rank, and Close. The error is [ErrNotShared] if the two ranks
	// share no memory, and another one if the other rank cannot have memory there.
	Attach(rank int, place uint64, n int) ([]byte, error)
}

var (
	// ErrNotAllocated: Free got memory that Alloc has not returned, or that was freed.
	ErrNotAllocated = errors.New("memory that was not allocated here, or was freed")
	// ErrNotShared: two ranks share no memory.
	ErrNotShared = errors.New("the ranks share no memory")
)

// A PrivateMemory is an [Allocator] for ranks that share no memory: it allocates what
// make does. Endpoints embed one. The zero PrivateMemory is ready for use.
type PrivateMemory struct {
	mu     sync.Mutex
	blocks map[*byte]privateBlock
	last   uint64
	bytes  int
	ended  bool
}

type privateBlock struct {
	memory []byte
	place  uint64
}

const (
	pageLen    = 4 << 10
	privateMax = min(math.MaxInt-pageLen, 1<<46) // make panics beyond
)

// Alloc implements [Allocator].
func (m *PrivateMemory) Alloc(n int) ([]byte, uint64, error) {
	if n < 0 || n > privateMax {
		return nil, 0, fmt.Errorf("%d bytes: want 0 to %d", n, privateMax)
	}
	if n == 0 {
		return nil, 0, nil
	}
	b := make([]byte, n+pageLen)
	b = b[-uintptr(unsafe.Pointer(unsafe.SliceData(b)))%pageLen:][:n:n]
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		return nil, 0, ErrClosed
	}
	if m.blocks == nil {
		m.blocks = make(map[*byte]privateBlock)
	}
	m.last++
	m.bytes += n
	m.blocks[&b[0]] = privateBlock{b, m.last}
	return b, m.last, nil
}

// Free implements [Allocator].
func (m *PrivateMemory) Free(memory []byte) error {
	if len(memory) == 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	b, ok := m.blocks[&memory[0]]
	if !ok {
		return ErrNotAllocated
	}
	delete(m.blocks, &memory[0])
	m.bytes -= len(b.memory)
	return nil
}

// Attach implements [Allocator].
func (m *PrivateMemory) Attach(int, uint64, int) ([]byte, error) { return nil, ErrNotShared }

// At returns the first n bytes of the memory at a place, or an error if there are none:
// ranks of one process implement Attach so.
func (m *PrivateMemory) At(place uint64, n int) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range m.blocks {
		if b.place == place && n >= 0 && n <= len(b.memory) {
			return b.memory[:n:n], nil
		}
	}
	return nil, fmt.Errorf("no %d bytes are allocated at place %d", n, place)
}

// Allocated returns how many bytes are allocated, as [Held] counts them.
func (m *PrivateMemory) Allocated() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bytes
}

// EndAlloc has Alloc return [ErrClosed] from now on, as after Close.
func (m *PrivateMemory) EndAlloc() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = true
}
