package topo

import (
	"fmt"
	"math/bits"
)

// A Tree is a complete binary tree with the processors at the leaves and
// switches inside. Of its N = 2p−1 vertices p−1 are switches; diameter
// 2 log((N+1)/2) = 2 log p, bisection width 1, N−1 links.
//
// The route climbs to the lowest common switch and descends. A switch is named
// by the processors below it: s4-7.
type Tree struct{ p, d int }

// NewTree returns the tree over p processors, a power of two.
func NewTree(p int) (*Tree, error) {
	d, err := logOf("tree", p)
	if err != nil {
		return nil, err
	}
	if err := checkLinks("tree", 4*float64(p)); err != nil {
		return nil, err
	}
	return &Tree{p, d}, nil
}

// String returns "tree".
func (t *Tree) String() string { return "tree" }

// Processors returns p.
func (t *Tree) Processors() int { return t.p }

// Switches returns p−1.
func (t *Tree) Switches() int { return t.p - 1 }

// LinkCount returns 2(p−1).
func (t *Tree) LinkCount() int { return 2 * (t.p - 1) }

// Diameter returns 2 log p.
func (t *Tree) Diameter() int { return 2 * t.d }

// Bisection returns 1, or 0 for one processor.
func (t *Tree) Bisection() (int, bool) { return min(t.d, 1), true }

// Ports returns 1, or 0 for one processor.
func (t *Tree) Ports() int { return min(t.d, 1) }

// Vertices have a second number, the heap index: the root is 1, the children of
// v are 2v and 2v+1, so leaf i is p+i. The link above v is number v−2, upwards
// first.

// AppendRoute appends the way up to the lowest common switch and down from it.
func (t *Tree) AppendRoute(dst []int32, from, to int) []int32 {
	climb := bits.Len(uint(from ^ to))
	for i := range climb {
		dst = append(dst, int32(2*((t.p+from)>>i-2)))
	}
	for i := climb - 1; i >= 0; i-- {
		dst = append(dst, int32(2*((t.p+to)>>i-2)+1))
	}
	return dst
}

// Ends returns a vertex and its parent, in the direction of the link.
func (t *Tree) Ends(link int) (from, to int) {
	heapIndex := link/2 + 2
	from, to = t.vertex(heapIndex), t.vertex(heapIndex/2)
	if link%2 == 1 {
		from, to = to, from
	}
	return from, to
}

// vertex returns the vertex of a heap index: leaves come first, then switches
// from the root down.
func (t *Tree) vertex(heapIndex int) int {
	if heapIndex >= t.p {
		return heapIndex - t.p
	}
	return t.p + heapIndex - 1
}

// Name returns a processor's number, or for a switch the processors below it,
// as in "s4-7".
func (t *Tree) Name(v int) string {
	if v < t.p {
		return numbered(v)
	}
	heapIndex := v - t.p + 1
	below := t.d - bits.Len(uint(heapIndex)) + 1 // levels
	first := heapIndex<<below - t.p
	return fmt.Sprintf("s%d-%d", first, first+1<<below-1)
}
