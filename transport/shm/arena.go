package shm

import (
	"cmp"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/chorale-go/chorale/transport"
)

// An arena is the part of the job's file out of which one rank allocates. It is as long as
// it may ever be, and takes no memory at first: its rank commits it a huge page at a time
// when it is allocated, and gives it back when all of a huge page is free. A message that
// lies in its sender's arena is announced by its place there, and the receiver reads it in
// the mapping that it makes of the arena when it first meets such a place. So the file
// never changes its length, and what a rank has written survives its process.
type arena struct {
	base atomic.Uintptr // the address of mem; 0 until it is mapped

	mu        sync.Mutex // guards the fields below
	mem       []byte
	heap      *heap
	committed []bool // by huge page
	denied    error  // why the kernel has made no huge pages, the first time
	closed    bool
}

// Alloc implements [transport.Allocator]. The memory is in huge pages where the kernel can
// make them. It takes whole pages of 4 KiB, and from 1 MiB on it begins on a huge page of
// 2 MiB. A rank has [AllocMax] bytes at most.
func (e *Endpoint) Alloc(n int) ([]byte, uint64, error) {
	if n < 0 {
		return nil, 0, fmt.Errorf("%d bytes: want 0 or more", n)
	}
	if n == 0 {
		return nil, 0, nil
	}
	a := &e.arena
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.open(e); err != nil {
		return nil, 0, err
	}
	x, ok := a.heap.alloc(n)
	if !ok {
		return nil, 0, fmt.Errorf("%s of shared memory: rank %d has %s, and may have %s at most", mebibytes(int64(n)), e.cfg.Rank, mebibytes(int64(a.heap.held)), mebibytes(int64(len(a.mem))))
	}
	if err := a.commit(e.seg, e.cfg.Rank, x); err != nil {
		a.release(x.at)
		return nil, 0, err
	}
	b := a.mem[x.at:][:n:n]
	clear(b) // it may have been used before; and its pages are there when it is used
	return b, uint64(x.at), nil
}

// open maps the arena of this rank.
func (a *arena) open(e *Endpoint) (err error) {
	switch {
	case a.closed:
		return transport.ErrClosed
	case a.mem != nil:
		return nil
	}
	if a.mem, err = e.seg.mapArena(e.cfg.Rank); err != nil {
		return err
	}
	a.heap = newHeap(len(a.mem))
	a.committed = make([]bool, len(a.mem)/hugePageLen)
	a.base.Store(uintptr(unsafe.Pointer(&a.mem[0])))
	return nil
}

// mapArena maps the arena of a rank.
func (s *segment) mapArena(rank int) ([]byte, error) {
	if s.bare {
		return nil, fmt.Errorf("the job's file has no room for memory to allocate, because the launcher may not make long files (ulimit -f)")
	}
	return mapFile(s.file, s.arenaOf(rank), s.arenaLen())
}

// commit has memory for an extent, in huge pages if possible.
func (a *arena) commit(s *segment, rank int, x extent) error {
	for i, end := x.at/hugePageLen, roundUp(x.end(), hugePageLen)/hugePageLen; i < end; {
		n := i
		for n < end && !a.committed[n] {
			n++
		}
		if n == i {
			i++
			continue
		}
		at, length := i*hugePageLen, (n-i)*hugePageLen
		denied, err := commitHuge(s.file, s.arenaOf(rank)+int64(at), a.mem[at:][:length])
		if err != nil {
			return err
		}
		a.denied = cmp.Or(a.denied, denied)
		for ; i < n; i++ {
			a.committed[i] = true
		}
	}
	return nil
}

// decommit gives the huge pages back that lie in a free extent.
func (a *arena) decommit(x extent) {
	for i := roundUp(x.at, hugePageLen) / hugePageLen; (i+1)*hugePageLen <= x.end(); i++ {
		if a.committed[i] {
			decommit(a.mem[i*hugePageLen:][:hugePageLen])
			a.committed[i] = false
		}
	}
}

// Free implements [transport.Allocator].
func (e *Endpoint) Free(memory []byte) error {
	if len(memory) == 0 {
		return nil
	}
	a := &e.arena
	a.mu.Lock()
	defer a.mu.Unlock()
	if place, ok := e.place(memory); !ok || !a.release(place) {
		return transport.ErrNotAllocated
	}
	return nil
}

// release frees what was allocated at a place, and gives back the huge pages that are free
// now. It returns false if nothing is allocated there.
func (a *arena) release(at int) bool {
	freed, within, ok := a.heap.release(at)
	if ok { // what lies beyond the huge pages of freed was given back before
		begin, end := freed.at/hugePageLen*hugePageLen, roundUp(freed.end(), hugePageLen)
		begin, end = max(begin, within.at), min(end, within.end())
		a.decommit(extent{begin, end - begin})
	}
	a.unmapUnused()
	return ok
}

// unmapUnused unmaps the arena after Close, once all of it is freed.
func (a *arena) unmapUnused() {
	if a.closed && a.mem != nil && a.heap.held == 0 {
		a.base.Store(0)
		_ = unmapFile(a.mem) // it is a mapping: nothing can fail
		a.mem = nil
	}
}

// place returns where memory of this process lies in the arena of this rank, and false if
// it lies elsewhere. It needs no lock: an arena stays where it is until Close.
func (e *Endpoint) place(memory []byte) (int, bool) {
	base := e.arena.base.Load()
	at := uintptr(unsafe.Pointer(unsafe.SliceData(memory))) - base
	return int(at), base != 0 && at < uintptr(e.seg.arenaLen())
}

// Attach implements [transport.Allocator].
func (e *Endpoint) Attach(rank int, place uint64, n int) ([]byte, error) {
	if !e.engine.IsPeer(rank) {
		return nil, &transport.RankError{Peer: rank, Rank: e.cfg.Rank, Size: e.cfg.Size}
	}
	e.engine.Lock()
	defer e.unlock()
	if e.engine.Closed() {
		return nil, transport.ErrClosed
	}
	l := &e.links[rank]
	b, err := l.shared(place, uint64(n))
	l.attached = l.attached || b != nil
	if b == nil && err == nil {
		err = fmt.Errorf("rank %d cannot have %d bytes at place %d", rank, n, place)
	}
	return b, err
}

// shared returns bytes of the peer's arena, or none if there are no such bytes.
func (l *link) shared(place, n uint64) ([]byte, error) {
	if length := uint64(l.e.seg.arenaLen()); place > length || n > length-place {
		return nil, nil
	}
	if l.arena == nil {
		var err error
		if l.arena, err = l.e.seg.mapArena(l.peer); err != nil {
			return nil, err
		}
	}
	return l.arena[place:][:n:n], nil
}

// allocated returns how many bytes are allocated.
func (a *arena) allocated() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.heap == nil {
		return 0
	}
	return a.heap.held
}

// closeArenas unmaps what the caller does not know: allocated memory survives Close, since
// another goroutine may be in a call that uses it.
func (e *Endpoint) closeArenas() {
	a := &e.arena
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	a.unmapUnused()
	for i := range e.links {
		if l := &e.links[i]; !l.attached {
			_ = unmapFile(l.arena) // as above, or there is none
		}
	}
}
