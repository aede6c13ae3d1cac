package shm

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A heap is compared with a list of what is allocated, under allocations and releases in
// random order.
func TestAHeapGivesNoByteTwice(t *testing.T) {
	const length = 64 << 20
	random := rand.New(rand.NewPCG(1, 2))
	h := newHeap(length)
	var all []extent
	for range 20000 {
		if len(all) > 0 && random.IntN(100) < 48 {
			i := random.IntN(len(all))
			freed, within, ok := h.release(all[i].at)
			if !ok || freed != all[i] || within.at > freed.at || within.end() < freed.end() {
				t.Fatalf("%v is released as %v, a part of %v, %v", all[i], freed, within, ok)
			}
			if _, _, ok := h.release(all[i].at); ok {
				t.Fatalf("%v is released twice", all[i])
			}
			all = slices.Delete(all, i, i+1)
			continue
		}
		n := 1 + random.IntN(8<<random.IntN(20))
		x, ok := h.alloc(n)
		if !ok {
			continue
		}
		if x.n < n || x.n >= n+heapUnit || x.at%heapUnit != 0 || n >= heapAligned && x.at%hugePageLen != 0 || x.at < 0 || x.end() > length {
			t.Fatalf("%d bytes: got %v", n, x)
		}
		if i := slices.IndexFunc(all, func(y extent) bool { return x.at < y.end() && y.at < x.end() }); i >= 0 {
			t.Fatalf("%v overlaps %v", x, all[i])
		}
		all = append(all, x)
	}
	for _, x := range all {
		h.release(x.at)
	}
	if want := []extent{{0, length}}; !slices.Equal(h.free, want) || h.held != 0 {
		t.Errorf("in the end %v are free and %d bytes held, want %v", h.free, h.held, want)
	}
	if _, ok := h.alloc(length + 1); ok {
		t.Error("more is allocated than there is")
	}
	if x, ok := h.alloc(length); !ok || x != (extent{0, length}) {
		t.Errorf("all of it: %v, %v", x, ok)
	}
}
