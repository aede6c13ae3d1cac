package chorale

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/chorale-go/chorale/transport"
)

// A Window is memory of several ranks that each of them reads and writes directly: a part
// per rank, which [Window.Local] returns. It suits halos, where a rank reads the edges of
// its neighbors where they are, and tables that all look up.
//
// Ranks order their accesses themselves: by [Window.Fence], by [Window.Lock], by messages,
// or by atomic operations on the elements. What a rank does before it calls Fence, sends
// a message or calls Unlock is seen by a rank after its Fence, its Recv or its Lock. Two
// accesses of which one writes, and that nothing orders, are a data race, as between
// goroutines; where the ranks are goroutines, the race detector finds it.
type Window[T any] struct {
	comm  *Comm
	own   []byte // as allocated
	parts [][]T
	locks []*atomic.Uint32 // by rank: 1 + the rank that has locked the part, or 0
}

// windowHeader is how many bytes precede a part: a cache line with its lock.
const windowHeader = 64

// A windowPart tells other ranks of a part.
type windowPart struct {
	Place uint64
	Bytes int64
}

// NewWindow makes a window whose part of this rank has n elements, all zero. N may differ
// from rank to rank. All ranks call it; it takes two calls of [AllGather], and fails as
// they do. The ranks have to share memory: ranks of [Run] do, and so do processes of one
// host over shared memory, which [Comm.SplitHost] finds. If two do not, every rank gets an
// ErrArgument that names them. If this rank has no memory for its part, all get an error.
func NewWindow[T any](ctx context.Context, c *Comm, n int) (*Window[T], error) {
	const call = "window"
	if c == nil {
		return nil, c.unusable(call)
	}
	if err := checkElement(reflect.TypeFor[T]()); err != nil {
		return nil, c.argumentErrorf(call, "%w", err)
	}
	if ctx == nil {
		return nil, c.argumentErrorf(call, "%w", errNoContext)
	}
	size := elementSize[T]()
	if n < 0 || n > (math.MaxInt-windowHeader)/size {
		return nil, c.argumentErrorf(call, "%d elements of %d bytes: want 0 or more, and as many as can be counted", n, size)
	}
	w := &Window[T]{comm: c}
	part := windowPart{Bytes: int64(windowHeader + n*int(unsafe.Sizeof(*new(T))))}
	var lacking error
	if w.own, part.Place, lacking = c.alloc(call, reflect.TypeFor[byte](), int(part.Bytes)); lacking != nil {
		part.Bytes = 0
	}
	err := w.join(ctx, part)
	switch {
	case lacking != nil:
		return nil, lacking
	case err != nil:
		c.free(w.own)
		return nil, err
	}
	return w, nil
}

// join attaches the parts of the others. All ranks get an error if one of them does.
func (w *Window[T]) join(ctx context.Context, mine windowPart) error {
	c := w.comm
	all := make([]windowPart, c.size)
	if err := AllGather(ctx, c, all, []windowPart{mine}); err != nil {
		return err
	}
	w.parts, w.locks = make([][]T, c.size), make([]*atomic.Uint32, c.size)
	missing := int64(-1) // the first rank whose part this one cannot attach
	var why error
	for rank, p := range all {
		b := w.own
		switch {
		case p.Bytes == 0:
			missing, why = int64(rank), errors.New("it has no memory for its part")
		case rank != c.rank:
			if b, why = c.job.endpoint.Attach(c.jobRank(rank), p.Place, int(p.Bytes)); why != nil {
				missing = int64(rank)
			}
		}
		if missing >= 0 {
			break
		}
		w.locks[rank] = (*atomic.Uint32)(unsafe.Pointer(&b[0]))
		w.parts[rank] = elements[T](b[windowHeader:])
	}
	missed := make([]int64, c.size)
	if err := AllGather(ctx, c, missed, []int64{missing}); err != nil {
		return err
	}
	if why != nil && !errors.Is(why, transport.ErrNotShared) {
		return c.argumentErrorf("window", "rank %d: %w", missing, why)
	}
	for rank, other := range missed {
		if other >= 0 {
			return c.argumentErrorf("window", "ranks %d and %d: %w: want ranks of one host, as of SplitHost, over shared memory", rank, other, transport.ErrNotShared)
		}
	}
	return nil
}

// Local returns the part of a rank, or nil if there is no such rank. It is the same memory
// for all ranks, and stays until [Window.Free].
func (w *Window[T]) Local(rank int) []T {
	if rank < 0 || rank >= len(w.parts) {
		return nil
	}
	return w.parts[rank]
}

// Fence returns when all ranks have called it: what they have written before, all ranks
// read afterwards. It is a [Barrier] of the communicator, and fails as that does.
func (w *Window[T]) Fence(ctx context.Context) error { return Barrier(ctx, w.comm) }

// Lock waits until no rank has locked a rank's part, and locks it. It excludes other calls
// of Lock, and not accesses without one. Which of several ranks that wait is next is open.
//
// If the rank that has locked the part leaves the job or is lost, Lock fails, and its error
// names that rank; the part stays locked, in the state that the rank has left it in. Lock
// fails when ctx ends. After either error the communicator stays usable. To lock a part
// twice, or that of a rank that does not exist, is an ErrArgument: a lock belongs to the
// rank, not to one of its goroutines.
func (w *Window[T]) Lock(ctx context.Context, rank int) error {
	c := w.comm
	if ctx == nil {
		return c.argumentErrorf("lock", "%w", errNoContext)
	}
	if rank < 0 || rank >= len(w.locks) {
		return c.argumentErrorf("lock", "no rank %d: want 0 to %d", rank, len(w.locks)-1)
	}
	word, mine := w.locks[rank], uint32(c.rank)+1
	for n := 0; ; n++ {
		switch holder := word.Load(); {
		case holder == 0:
			if word.CompareAndSwap(0, mine) {
				return nil
			}
		case holder == mine:
			return c.argumentErrorf("lock", "this rank has locked the part of rank %d already", rank)
		case n < lockYields:
			runtime.Gosched()
		default:
			if err := w.awaitUnlock(ctx, word, holder); err != nil {
				return c.failed("lock", transport.Signature{}, nil, fmt.Errorf("rank %d has locked the part of rank %d: %w", holder-1, rank, err))
			}
		}
		if err := transport.Cause(ctx); err != nil {
			return c.failed("lock", transport.Signature{}, nil, err)
		}
	}
}

const (
	lockYields   = 1000             // looks at a lock before the first sleep
	lockSleepMin = time.Microsecond // the sleeps between looks
	lockSleepMax = time.Millisecond
)

// awaitUnlock returns when another rank no longer has the lock, or why it will not give it
// back: the rank is gone, or ctx has ended.
func (w *Window[T]) awaitUnlock(ctx context.Context, word *atomic.Uint32, holder uint32) error {
	ctx, cancel := context.WithCancel(ctx)
	gone := make(chan error, 1)
	go func() { gone <- w.awaitEnd(ctx, int(holder)-1) }()
	defer func() {
		cancel()
		<-gone
	}()
	for d := lockSleepMin; word.Load() == holder; d = min(2*d, lockSleepMax) {
		select {
		case err := <-gone:
			gone <- nil
			return err
		case <-time.After(d):
		}
	}
	return nil
}

// awaitEnd returns why a rank is gone, or why ctx has ended. It waits for a message that no
// rank sends.
func (w *Window[T]) awaitEnd(ctx context.Context, rank int) error {
	c := w.comm
	for {
		if _, _, err := c.job.endpoint.Probe(ctx, c.jobRank(rank), transport.Match{Context: c.context, Tag: math.MaxInt}, true); err != nil {
			return err
		}
	}
}

// Unlock unlocks a part that this rank has locked. If it has not, that is an ErrArgument.
func (w *Window[T]) Unlock(rank int) error {
	if rank < 0 || rank >= len(w.locks) || !w.locks[rank].CompareAndSwap(uint32(w.comm.rank)+1, 0) {
		return w.comm.argumentErrorf("unlock", "this rank has not locked the part of rank %d", rank)
	}
	return nil
}

// Free frees the window when all ranks have called it; from then on no rank accesses any
// part. Without Free, the parts are there until the communicator is freed. It is a Barrier,
// and fails as that does: then the window stays.
func (w *Window[T]) Free(ctx context.Context) error {
	if err := Barrier(ctx, w.comm); err != nil {
		return err
	}
	w.parts, w.locks = nil, nil
	if !w.comm.free(w.own) {
		return w.comm.argumentErrorf("free", "the window was freed before")
	}
	return nil
}
