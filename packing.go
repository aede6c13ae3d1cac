package chorale

import (
	"sync"

	"github.com/chorale-go/chorale/internal/exec"
)

// keptPacking is how many memories for the elements of strided views a communicator
// keeps. A [SendRecvStrided] takes two.
const keptPacking = 4

// packing is the memory into which a communicator's calls pack strided views. Each call
// takes as many as it needs, and any number of goroutines call.
type packing struct {
	kept      *keptCounts
	allocator exec.Allocator

	mu     sync.Mutex     // guards the fields below
	idle   []*exec.Memory // keptPacking at most
	closed bool
}

// take returns memory that no other call uses: that which was used last.
func (p *packing) take() *exec.Memory {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.idle); n > 0 {
		m := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return m
	}
	return &exec.Memory{Held: &p.kept.memory, Allocator: p.allocator}
}

// put keeps memory for the next call, or drops it if there is enough.
func (p *packing) put(m *exec.Memory) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle) == keptPacking {
		m.Free()
		return
	}
	p.idle = append(p.idle, m)
}

// close drops the memory. What calls still use is dropped when they end.
func (p *packing) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, m := range p.idle {
		m.Free()
	}
	p.idle = nil
}
