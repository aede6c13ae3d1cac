package chorale

import (
	"context"
	"fmt"
)

// A Grid is a communicator whose ranks are arranged in a Cartesian grid of any
// number of dimensions. The last coordinate varies fastest, as in row-major order.
type Grid struct {
	*Comm
	Dims     []int  // the number of coordinates in each dimension
	Periodic []bool // whether a dimension closes to a ring
}

// Grid creates a grid of the first ranks of c, as many as the product of dims. The
// other ranks get nil. If periodic is nil, no dimension closes to a ring. All ranks
// call it with the same arguments. Dims that are not positive, or that need more
// ranks than c has, are an ErrArgument. See [Comm.Split] for other errors.
func (c *Comm) Grid(ctx context.Context, dims []int, periodic []bool) (*Grid, error) {
	if c == nil {
		return nil, c.unusable("grid")
	}
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
		return nil, c.rejectCallf("grid", "dims %v, periodic %v: want extents whose product is at most %d, and as many of both", dims, periodic, c.size)
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

// Coordinates returns the coordinates of a rank, 0 ≤ rank < Size, and nil if g is nil.
func (g *Grid) Coordinates(rank int) []int {
	if g == nil {
		return nil
	}
	at := make([]int, len(g.Dims))
	for d := len(g.Dims) - 1; d >= 0; d-- {
		at[d] = rank % g.Dims[d]
		rank /= g.Dims[d]
	}
	return at
}

// RankAt returns the rank with the given coordinates. In a periodic dimension a
// coordinate counts modulo the dimension. In another, ok is false beyond the edge.
// It is false as well if the number of coordinates is wrong.
func (g *Grid) RankAt(at ...int) (rank int, ok bool) {
	if g == nil || len(at) != len(g.Dims) {
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

// Neighbor returns the rank whose coordinate in a dimension is larger than this
// rank's by the given distance, which may be negative. If there is no such rank or
// no such dimension, ok is false.
func (g *Grid) Neighbor(dimension, distance int) (rank int, ok bool) {
	if g == nil || dimension < 0 || dimension >= len(g.Dims) {
		return 0, false
	}
	at := g.Coordinates(g.rank)
	at[dimension] += distance
	return g.RankAt(at...)
}

// Line creates the communicator of the ranks that differ from this one in the
// given dimension only, in the order of that coordinate. In two dimensions,
// dimension 1 makes rows and dimension 0 makes columns. All ranks call it with the
// same dimension. One that does not exist is an ErrArgument. See [Comm.Split] for
// other errors.
func (g *Grid) Line(ctx context.Context, dimension int) (*Comm, error) {
	if g == nil {
		return nil, (*Comm)(nil).unusable("line")
	}
	if dimension < 0 || dimension >= len(g.Dims) {
		return nil, g.rejectCallf("line", "dimension %d: want 0 to %d", dimension, len(g.Dims)-1)
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
