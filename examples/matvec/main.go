// Matvec multiplies a matrix by a vector on an n×n grid of ranks, which are
// numbered row by row. Rank (i, j) has the element A[i,j]. The vector x is
// distributed over the top row of the grid, and y = Ax over the left column.
//
//	chorale run -n 16 ./examples/matvec
//	chorale run -n 16 ./examples/matvec -tell 6
//
// It uses Bcast, down all columns at the same time; Reduce, along all rows; and
// Gather, to look at y. Grid and Line make the communicators.
package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/chorale-go/chorale"
)

func main() {
	tell := flag.Int("tell", 9, "the `rank` that prints its part in the computation, if it exists")
	flag.Parse()
	chorale.Main(func(ctx context.Context, c *chorale.Comm) error {
		n := int(math.Sqrt(float64(c.Size())))
		grid, err := c.Grid(ctx, []int{n, n}, nil)
		if err != nil || grid == nil {
			return err // a nil grid: this rank is not part of it
		}
		return multiply(ctx, grid, n, *tell)
	})
}

// The matrix and the vector.
func a(i, j int) int { return 10*(i+1) + (j + 1) }
func x(j int) int    { return j + 1 }

func multiply(ctx context.Context, grid *chorale.Grid, n, tell int) error {
	column, err := grid.Line(ctx, 0)
	if err != nil {
		return err
	}
	row, err := grid.Line(ctx, 1)
	if err != nil {
		return err
	}
	i, j := column.Rank(), row.Rank()
	value := make([]int, 1)
	if i == 0 {
		value[0] = x(j)
	}
	if err := chorale.Bcast(ctx, column, value, 0); err != nil {
		return err
	}
	value[0] *= a(i, j)
	if err := chorale.Reduce(ctx, row, value, value, chorale.Sum, 0); err != nil {
		return err
	}
	if grid.Rank() == tell {
		fmt.Println(role(grid, i, j, n))
	}
	if j > 0 {
		return nil
	}
	y := make([]int, n)
	if err := chorale.Gather(ctx, column, y, value, 0); err != nil || i > 0 {
		return err
	}
	if want := serial(n); !slices.Equal(y, want) {
		return fmt.Errorf("y is %v: want %v", y, want)
	}
	fmt.Println("y =", y)
	return nil
}

// role describes the part of rank (i, j).
func role(grid *chorale.Grid, i, j, n int) string {
	top, _ := grid.RankAt(0, j)
	left, _ := grid.RankAt(i, 0)
	var others []string
	for k := range n {
		if rank, _ := grid.RankAt(i, k); k != j {
			others = append(others, strconv.Itoa(rank))
		}
	}
	return fmt.Sprintf("rank %d gets x[%d] from rank %d, multiplies it by A[%d,%d], and takes part with %s in the reduction that leaves y[%d] on rank %d",
		grid.Rank(), j, top, i, j, strings.Join(others, ", "), i, left)
}

func serial(n int) []int {
	y := make([]int, n)
	for i := range y {
		for j := range n {
			y[i] += a(i, j) * x(j)
		}
	}
	return y
}
