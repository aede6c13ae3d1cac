package mixed

import (
	"context"

	"github.com/chorale-go/chorale/transport"
)

// Alloc implements [transport.Allocator]: the memory is that of the local endpoint, which
// the ranks of the host share. The remote endpoint sends from it as from any other.
func (e *Endpoint) Alloc(n int) ([]byte, uint64, error) { return e.local.Alloc(n) }

// Free implements [transport.Allocator].
func (e *Endpoint) Free(memory []byte) error { return e.local.Free(memory) }

// Attach implements [transport.Allocator].
func (e *Endpoint) Attach(rank int, place uint64, n int) ([]byte, error) {
	switch location, err := e.locate(context.Background(), rank); {
	case err != nil:
		return nil, err
	case location == elsewhere:
		return nil, transport.ErrNotShared
	}
	return e.local.Attach(rank, place, n)
}
