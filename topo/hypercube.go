package topo

import (
	"fmt"
	"math/bits"
)

// A Hypercube has a link between processors whose binary numbers differ in one
// bit. Diameter log p, bisection width p/2, (p log p)/2 links.
//
// The route is E-cube: it corrects the bits that differ from the lowest to the
// highest. The directed link of processor v in dimension i has the id
// v·log p + i.
type Hypercube struct{ d int }

// NewHypercube returns the hypercube of p processors, a power of two.
func NewHypercube(p int) (*Hypercube, error) {
	d, err := logOf("hypercube", p)
	if err != nil {
		return nil, err
	}
	if err := checkLinks("hypercube", float64(p)*float64(d)); err != nil {
		return nil, err
	}
	return &Hypercube{d}, nil
}

// logOf returns log p, or an error if p is not a power of two.
func logOf(name string, p int) (int, error) {
	if err := checkProcessors(name, p); err != nil {
		return 0, err
	}
	d := bits.Len(uint(p)) - 1
	if p != 1<<d {
		return 0, fmt.Errorf("%s of %d processors: want a power of two, such as %d or %d", name, p, 1<<d, 2<<d)
	}
	return d, nil
}

// String returns "hypercube".
func (h *Hypercube) String() string { return "hypercube" }

// Processors returns p.
func (h *Hypercube) Processors() int { return 1 << h.d }

// Switches returns 0.
func (h *Hypercube) Switches() int { return 0 }

// LinkCount returns (p log p)/2.
func (h *Hypercube) LinkCount() int { return h.d << h.d / 2 }

// Diameter returns log p.
func (h *Hypercube) Diameter() int { return h.d }

// Bisection returns p/2, or 0 for one processor.
func (h *Hypercube) Bisection() (int, bool) { return 1 << h.d / 2, true }

// Ports returns log p.
func (h *Hypercube) Ports() int { return h.d }

// AppendRoute appends the E-cube route, which corrects the lowest bit first.
func (h *Hypercube) AppendRoute(dst []int32, from, to int) []int32 {
	for rest := uint(from ^ to); rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros(rest)
		dst = append(dst, int32(from*h.d+i))
		from ^= 1 << i
	}
	return dst
}

// Ends returns the two processors that a directed link joins.
func (h *Hypercube) Ends(link int) (from, to int) {
	from = link / h.d
	return from, from ^ 1<<(link%h.d)
}

// Name returns a processor's number.
func (h *Hypercube) Name(v int) string { return numbered(v) }
