package chorale

import (
	"errors"
	"math"
	"reflect"
	"unsafe"

	"github.com/chorale-go/chorale/transport"
)

// Alloc returns n elements, all zero, in memory for messages. Where ranks are processes
// that share memory, it is a part of that, in huge pages where the system has them: from
// there, a rank takes what another one sends straight out of the other's memory, as
// goroutines do, without a system call. Elsewhere it is like the memory of make. Calls
// need not know: collectives and tagged messages find out by themselves, on each side for
// itself. It is worth it for messages of 4 KiB and more that are sent again and again.
//
// Alloc is local: it sends nothing, and other ranks need not call it. It takes time, also
// because the memory is in use at once, and is best called once for many messages. The
// memory takes whole pages of 4 KiB, and huge pages of 2 MiB are kept for small pieces
// together. [transport.Held] counts it. If there is not so much, which the error says,
// or n is negative, or T holds pointers, that is an ErrArgument, and nothing has changed.
//
// The memory is there until [Free] of it, or [Comm.Free], and the garbage collector does not
// know it: an access after that ends the program, or meets the data of others. It survives
// Close. It may be used with every communicator. Alloc may be called at any time.
func Alloc[T any](c *Comm, n int) ([]T, error) {
	if c == nil || c.state.Load() >= freeing {
		return nil, c.unusable("alloc")
	}
	b, _, err := c.alloc("alloc", reflect.TypeFor[T](), n)
	return elements[T](b), err
}

// Free gives memory back that [Alloc] has returned for the same communicator. No call may
// be using it. Buf begins where the memory begins; no elements are nothing to free. Memory
// that is not from there, or was freed before, is an ErrArgument.
func Free[T any](c *Comm, buf []T) error {
	if c == nil {
		return c.unusable("free")
	}
	if b := bytesOf(buf); len(b) > 0 && !c.free(b) {
		return c.argumentErrorf("free", "memory at %p: want memory from Alloc of this communicator that was not freed", unsafe.SliceData(buf))
	}
	return nil
}

// alloc returns the memory of n elements, and the place by which other ranks attach it.
func (c *Comm) alloc(call string, elem reflect.Type, n int) ([]byte, uint64, error) {
	if err := checkElement(elem); err != nil {
		return nil, 0, c.argumentErrorf(call, "%w", err)
	}
	if size := int(elem.Size()); n < 0 || size > 0 && n > math.MaxInt/size {
		return nil, 0, c.argumentErrorf(call, "%d elements of %d bytes: want 0 or more, and as many as can be counted", n, size)
	}
	j := c.job
	b, place, err := j.endpoint.Alloc(n * int(elem.Size()))
	switch {
	case errors.Is(err, ErrClosed):
		return nil, 0, c.newError(call, err)
	case err != nil:
		return nil, 0, c.argumentErrorf(call, "%w", err)
	}
	if len(b) > 0 {
		j.mu.Lock()
		defer j.mu.Unlock()
		id := c.identity
		if id.allocated == nil {
			id.allocated = make(map[*byte]struct{})
		}
		id.allocated[&b[0]] = struct{}{}
		j.allocates.Store(true)
	}
	return b, place, nil
}

// free frees memory of the communicator, and reports whether it was that.
func (c *Comm) free(b []byte) bool {
	j := c.job
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, ok := c.identity.allocated[&b[0]]; !ok {
		return false
	}
	delete(c.identity.allocated, &b[0])
	return j.endpoint.Free(b) == nil
}

// freeAllocated frees all memory of a communicator that is released. The caller holds
// job.mu.
func (id *identity) freeAllocated(e transport.Endpoint) {
	for b := range id.allocated {
		_ = e.Free(unsafe.Slice(b, 1)) // it is from there
	}
	id.allocated = nil
}

// A scratchAllocator allocates what the calls of a job compute in. Once the program has
// allocated memory, that is allocated too, so that other ranks read it as they read the
// caller's.
type scratchAllocator struct{ *job }

func (a scratchAllocator) Wanted() bool { return a.allocates.Load() }

func (a scratchAllocator) Alloc(n int) []byte {
	b, _, _ := a.endpoint.Alloc(n) // if there is none, memory of make will do
	return b
}

func (a scratchAllocator) Free(b []byte) { _ = a.endpoint.Free(b) } // it is from Alloc, or was never the endpoint's
