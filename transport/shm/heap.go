package shm

import "slices"

// A heap says which bytes of an arena are allocated: the first extent that is long enough
// is taken, and adjacent free ones become one. It knows numbers, and touches no memory.
type heap struct {
	free []extent    // in order; no two of them touch
	used map[int]int // by offset: bytes
	held int         // bytes that are used
}

// An extent is a range of bytes of an arena.
type extent struct{ at, n int }

func (x extent) end() int { return x.at + x.n }

const (
	// heapUnit is the granularity of a heap: no two pieces of memory share a page.
	heapUnit = 4 << 10
	// heapAligned is from how many bytes on memory begins on a huge page.
	heapAligned = hugePageLen / 2
)

func newHeap(n int) *heap { return &heap{free: []extent{{0, n}}, used: make(map[int]int)} }

// alloc takes n bytes, at least one, and returns where they are, in whole units. It
// returns false if no extent is long enough.
func (h *heap) alloc(n int) (extent, bool) {
	unit := heapUnit
	if n >= heapAligned {
		unit = hugePageLen
	}
	for i, x := range h.free {
		at := roundUp(x.at, unit)
		if n > x.end()-at {
			continue
		}
		taken := extent{at, roundUp(n, heapUnit)} // an arena is whole units
		h.free = slices.Replace(h.free, i, i+1, nonEmpty(extent{x.at, at - x.at}, extent{taken.end(), x.end() - taken.end()})...)
		h.used[at] = taken.n
		h.held += taken.n
		return taken, true
	}
	return extent{}, false
}

func nonEmpty(all ...extent) []extent {
	return slices.DeleteFunc(all, func(x extent) bool { return x.n == 0 })
}

// release frees what was allocated at an offset. It returns the free extent that this is
// a part of now, and false if nothing is allocated there.
func (h *heap) release(at int) (freed, within extent, ok bool) {
	n, ok := h.used[at]
	if !ok {
		return extent{}, extent{}, false
	}
	delete(h.used, at)
	h.held -= n
	freed = extent{at, n}
	within = freed
	i, _ := slices.BinarySearchFunc(h.free, at, func(x extent, at int) int { return x.at - at })
	last := i
	if i > 0 && h.free[i-1].end() == at {
		i--
		within = extent{h.free[i].at, h.free[i].n + n}
	}
	if last < len(h.free) && h.free[last].at == within.end() {
		within.n += h.free[last].n
		last++
	}
	h.free = slices.Replace(h.free, i, last, within)
	return freed, within, true
}
