package topo

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// A Placement is the processors of the ranks: element r is the processor of
// rank r. It holds every processor once.
type Placement []int

// Identity puts rank r on processor r.
func Identity(p int) Placement {
	placement := make(Placement, max(p, 0))
	for r := range placement {
		placement[r] = r
	}
	return placement
}

// RowMajor numbers the ranks row by row over a grid of the given sizes: the
// last dimension varies fastest. Processors are numbered in the same way, so it
// is the identity. It is empty if the sizes are not those of a grid.
func RowMajor(dims ...int) Placement { return Identity(product(dims)) }

// ColumnMajor numbers the ranks column by column over a grid of the given
// sizes: the first dimension varies fastest. It is empty if the sizes are not
// those of a grid.
func ColumnMajor(dims ...int) Placement {
	placement := make(Placement, product(dims))
	if len(placement) == 0 {
		return placement
	}
	stride := len(placement)
	reach := 1 // the product of the sizes so far
	for _, n := range dims {
		stride /= n
		for r := range placement {
			placement[r] += r / reach % n * stride
		}
		reach *= n
	}
	return placement
}

// Gray embeds a grid in a hypercube: ranks are the points of the grid, row by
// row, and neighbors, also around its ends, sit on adjacent processors. One
// size makes a ring. It is an error if a size is not a power of two. Along a
// line the processors follow the binary reflected Gray code; each dimension has
// bits of its own.
func Gray(dims ...int) (Placement, error) {
	for _, n := range dims {
		if _, err := logOf("Gray code", n); err != nil {
			return nil, err
		}
	}
	placement := make(Placement, product(dims))
	if len(placement) == 0 {
		return nil, fmt.Errorf("Gray code of %s processors: want at most %d", sizes(dims), maxDirected)
	}
	stride := 1
	for _, n := range slices.Backward(dims) {
		for r := range placement {
			at := r / stride % n
			placement[r] += (at ^ at>>1) * stride
		}
		stride *= n
	}
	return placement, nil
}

// Random returns a random placement. The same seed gives the same placement.
func Random(p int, seed uint64) Placement {
	return rand.New(rand.NewPCG(seed, 0)).Perm(max(p, 0))
}

// product returns the product of sizes, or 0 if no topology has them.
func product(dims []int) int {
	p := 1
	for _, n := range dims {
		if n < 1 || n > maxDirected/p {
			return 0
		}
		p *= n
	}
	return p
}

// placementForms lists the texts that ParsePlacement reads, by example.
const placementForms = "identity, row-major, column-major, gray, gray:4x4, random:1 or a list such as 2,0,1"

// ParsePlacement reads a placement of ranks on the processors of t:
//
//	identity            rank r on processor r
//	row-major           row by row over a mesh or torus, which is the same
//	column-major        column by column over a mesh or torus
//	column-major:2x8    or over other sizes
//	gray                a ring in a hypercube
//	gray:4x8            a mesh or torus in a hypercube
//	random:7            shuffled, with a seed
//	2,0,3,1             a list: the processors of rank 0, 1, 2, …
//
// An error is a *[SyntaxError] if the text is wrong. If its sizes do not fit t,
// the error says which do.
func ParsePlacement(text string, t Topology) (Placement, error) {
	p := t.Processors()
	name, args, given := strings.Cut(text, ":")
	at := len(text) - len(args)
	switch name {
	case "identity":
		if given {
			return nil, &SyntaxError{"placement", text, len(name), "nothing more"}
		}
		return Identity(p), nil
	case "row-major", "column-major", "gray":
		dims, err := placementDims(text, name, at, given, t)
		if err != nil {
			return nil, err
		}
		return overGrid(text, name, dims)
	case "random":
		seed, err := strconv.ParseUint(args, 10, 64)
		if err != nil {
			return nil, &SyntaxError{"placement", text, at, "a seed, as in random:1"}
		}
		return Random(p, seed), nil
	}
	if text == "" || text[0] < '0' || text[0] > '9' {
		return nil, &SyntaxError{"placement", text, 0, placementForms}
	}
	return parseList(text, p)
}

// placementDims returns the sizes in the text, or those of t.
func placementDims(text, name string, at int, given bool, t Topology) ([]int, error) {
	p := t.Processors()
	if !given {
		if g, ok := t.(*Grid); ok && name != "gray" {
			return g.Dims(), nil
		}
		if name == "gray" {
			return []int{p}, nil
		}
		return nil, &SyntaxError{"placement", text, len(text), fmt.Sprintf("sizes, as in %s:4x4, since %v has none", name, t)}
	}
	dims, err := parseSizes("placement", text, at, family{form: name + ":4x4", sep: "x"})
	if err != nil {
		return nil, err
	}
	rest := p
	for _, n := range dims {
		if rest%n != 0 {
			rest = 0
			break
		}
		rest /= n
	}
	if rest != 1 {
		return nil, fmt.Errorf("placement %s: want sizes whose product is %d", text, p)
	}
	return dims, nil
}

func overGrid(text, name string, dims []int) (Placement, error) {
	switch name {
	case "row-major":
		return RowMajor(dims...), nil
	case "column-major":
		return ColumnMajor(dims...), nil
	}
	placement, err := Gray(dims...)
	if err != nil {
		return nil, fmt.Errorf("placement %s: %w", text, err)
	}
	return placement, nil
}

// parseList reads the processors of all ranks.
func parseList(text string, p int) (Placement, error) {
	placement := make(Placement, 0, p)
	ranks := make([]int, p) // one more than the rank on a processor
	at := 0
	for word := range strings.SplitSeq(text, ",") {
		r := len(placement)
		n, err := strconv.ParseUint(word, 10, 31)
		switch {
		case r == p:
			return nil, &SyntaxError{"placement", text, at - 1, fmt.Sprintf("no more than %d processors, one for each rank", p)}
		case err != nil || int(n) >= p:
			return nil, &SyntaxError{"placement", text, at, fmt.Sprintf("a processor from 0 to %d for rank %d", p-1, r)}
		case ranks[n] > 0:
			return nil, &SyntaxError{"placement", text, at, fmt.Sprintf("another processor for rank %d, since rank %d has this one", r, ranks[n]-1)}
		}
		ranks[n] = r + 1
		placement = append(placement, int(n))
		at += len(word) + 1
	}
	if r := len(placement); r < p {
		return nil, &SyntaxError{"placement", text, len(text), fmt.Sprintf("\",\" and a processor for rank %d", r)}
	}
	return placement, nil
}
