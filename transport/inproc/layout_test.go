package inproc

import (
	"testing"
	"unsafe"
)

// A link and a commState must lie on cache lines as their comments say, or a store
// by one rank slows another one down. The sizes are those of 64-bit processors.
func TestFieldsOfDifferentWritersAreOnDifferentCacheLines(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("pointers are shorter")
	}
	var l link
	var s commState
	for _, test := range []struct {
		name      string
		got, want uintptr
	}{
		{"size of a cell", unsafe.Sizeof(cell{}), cacheLine},
		{"offset of link.sender", unsafe.Offsetof(l.sender), 0},
		{"offset of link.receiver", unsafe.Offsetof(l.receiver), cacheLine},
		{"offset of link.cells", unsafe.Offsetof(l.cells), 2 * cacheLine},
		{"size of a link", unsafe.Sizeof(l), 3 * cacheLine},
		{"offset of commState.waiter", unsafe.Offsetof(s.waiter), 0},
		{"offset of commState.incomplete", unsafe.Offsetof(s.incomplete), cacheLine},
		{"offset of commState.endpoint", unsafe.Offsetof(s.endpoint), 2 * cacheLine},
		{"size of a pairSide", unsafe.Sizeof(pairSide{}), cacheLine},
		{"size of a taggedCell", unsafe.Sizeof(taggedCell{}), cacheLine},
		{"size of a taggedPairSide", unsafe.Sizeof(taggedPairSide{}), cacheLine},
		{"offset of taggedRing.mu", unsafe.Offsetof(taggedRing{}.mu), cacheLine},
		{"space between taggedQueue.sleeping and mu", unsafe.Offsetof(taggedQueue{}.mu) - unsafe.Offsetof(taggedQueue{}.sleeping) - 4, cacheLine},
		{"size of a commState", unsafe.Sizeof(s), 8 * cacheLine},
	} {
		if test.got != test.want {
			t.Errorf("%s: got %d bytes, want %d", test.name, test.got, test.want)
		}
	}
	for i := range 2 {
		if at := unsafe.Offsetof(pairCells{}.cells) + 8 + uintptr(i)*unsafe.Sizeof(pairCell{}); at%cacheLine != 0 {
			t.Errorf("pair cell %d is at byte %d of its memory", i, at)
		}
	}
	for i := range 2 {
		if at := unsafe.Offsetof(taggedPairCells{}.cells) + 8 + uintptr(i)*unsafe.Sizeof(taggedPairCell{}); at%cacheLine != 0 {
			t.Errorf("tagged pair cell %d is at byte %d of its memory", i, at)
		}
	}
	states := map[int]*commState{} // on the heap
	for i := range 100 {
		j := New(2)
		states[i] = j.Endpoint(i % 2).comm(0)
		step := &states[i].step
		for _, at := range []uintptr{uintptr(unsafe.Pointer(unsafe.SliceData(step.sends))), uintptr(unsafe.Pointer(unsafe.SliceData(step.recvs)))} {
			if at%cacheLine != 0 {
				t.Fatalf("what a step writes is at %#x, not at the beginning of a cache line", at)
			}
		}
	}
	links := map[int]*link{} // on the heap
	for i := range 100 {
		links[i] = newLink(nil, nil, []int{shallow, depth}[i%2])
		if at := uintptr(unsafe.Pointer(links[i])); at%cacheLine != 0 {
			t.Fatalf("a link is at %#x, not at the beginning of a cache line", at)
		}
		if at := uintptr(unsafe.Pointer(&links[i].cells[0])); at%cacheLine != 0 {
			t.Fatalf("a cell of a link is at %#x, not at the beginning of a cache line", at)
		}
		links[i].pair = newPairCells()
		if at := uintptr(unsafe.Pointer(&links[i].pair.cells[0])); at%cacheLine != 0 {
			t.Fatalf("a pair cell is at %#x, not at the beginning of a cache line", at)
		}
		if at := uintptr(unsafe.Pointer(New(1).Endpoint(0).tagged.ringOf(0).cells.at(0))); at%cacheLine != 0 {
			t.Fatalf("a cell of a ring is at %#x, not at the beginning of a cache line", at)
		}
		if at := uintptr(unsafe.Pointer(&New(2).Endpoint(0).tagged.ringOf(1).pair.cells[0])); at%cacheLine != 0 {
			t.Fatalf("a tagged pair cell is at %#x, not at the beginning of a cache line", at)
		}
		if at := uintptr(unsafe.Pointer(New(1).Endpoint(0).comm(0))); at%cacheLine != 0 {
			t.Fatalf("a commState is at %#x, not at the beginning of a cache line", at)
		}
	}
}
