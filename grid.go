package chorale

import (
	"context"
	"fmt"
)

// A Grid is a communicator whose ranks stand on a Cartesian grid of any number
// of dimensions, row by row: the last coordinate varies fastest.
type Grid struct {
	*Comm
	Dims     []int  // the extent in each dimension
	Periodic []bool // whether a dimension closes to a ring
}

// Grid makes a grid of the first ranks of c, as many as the product of dims.
// The others get nil. Periodic may be nil: no dimension closes. All ranks call
// it, with the same arguments.
func (c *Comm) Grid(ctx context.Context, dims []int, periodic []bool) (*Grid, error) {
	n := 1
	for _, d := range dims {
		if d < 1 || n > c.size {
			n = c.size + 1
			break
		}
		n *= d
	}
	if periodic == nil {
		periodic = make([]bool, len(dims))
	}
	if n > c.size || len(periodic) != len(dims) {
		c.sequence++
		return nil, c.wrong("grid", "dims %v, periodic %v: want extents whose product is at most %d, and as many of both", dims, periodic, c.size)
	}
	color := 0
	if c.rank >= n {
		color = undefined
	}
	sub, err := c.Split(ctx, color, c.rank)
	if sub == nil || err != nil {
		return nil, err
	}
	return &Grid{sub, append([]int(nil), dims...), append([]bool(nil), periodic...)}, nil
}

// Coordinates returns where a rank stands.
func (g *Grid) Coordinates(rank int) []int {
	at := make([]int, len(g.Dims))
	for d := len(g.Dims) - 1; d >= 0; d-- {
		at[d] = rank % g.Dims[d]
		rank /= g.Dims[d]
	}
	return at
}

// RankAt returns the rank that stands there. In a periodic dimension any
// coordinate is right; in another, ok is false beyond the edge.
func (g *Grid) RankAt(at ...int) (rank int, ok bool) {
	if len(at) != len(g.Dims) {
		return 0, false
	}
	for d, x := range at {
		n := g.Dims[d]
		if g.Periodic[d] {
			x = ((x % n) + n) % n
		}
		if x < 0 || x >= n {
			return 0, false
		}
		rank = rank*n + x
	}
	return rank, true
}

// Neighbour returns the rank so many places further along a dimension, which
// may be a negative number. Beyond an edge, ok is false.
func (g *Grid) Neighbour(dimension, places int) (rank int, ok bool) {
	if dimension < 0 || dimension >= len(g.Dims) {
		return 0, false
	}
	at := g.Coordinates(g.rank)
	at[dimension] += places
	return g.RankAt(at...)
}

// Line returns the communicator of the ranks that differ from this one in the
// given dimension only, in the order of that coordinate: in two dimensions,
// dimension 1 makes rows and dimension 0 makes columns. All ranks call it.
func (g *Grid) Line(ctx context.Context, dimension int) (*Comm, error) {
	if dimension < 0 || dimension >= len(g.Dims) {
		g.sequence++
		return nil, g.wrong("line", "dimension %d: want 0 to %d", dimension, len(g.Dims)-1)
	}
	at := g.Coordinates(g.rank)
	key := at[dimension]
	at[dimension] = 0
	color, ok := g.RankAt(at...)
	if !ok {
		return nil, fmt.Errorf("chorale: rank %d is not on its grid", g.rank)
	}
	return g.Split(ctx, color, key)
}
