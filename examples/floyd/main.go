// Floyd finds the shortest paths between all pairs of vertices. The ranks form a
// grid, and each has a block of the matrix of distances. In step k, paths through
// vertex k are considered: row k is broadcast along the columns of the grid, and
// column k along its rows.
//
//	chorale run -n 9 ./examples/floyd
//	chorale run -n 6 ./examples/floyd -n 250
//
// It uses Bcast on rows and columns of the grid, which Grid and Line make, and
// Reduce with Max.
package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/chorale-go/chorale"
)

func main() {
	n := flag.Uint("n", 90, "the `number` of vertices")
	flag.Parse()
	chorale.Main(func(ctx context.Context, c *chorale.Comm) error {
		rows := int(math.Sqrt(float64(c.Size())))
		for c.Size()%rows > 0 {
			rows--
		}
		grid, err := c.Grid(ctx, []int{rows, c.Size() / rows}, nil)
		if err != nil {
			return err
		}
		mine, err := paths(ctx, grid, int(*n))
		if err != nil {
			return err
		}
		return check(ctx, grid, mine, int(*n))
	})
}

// edges returns row i of the matrix: a ring through all vertices, and a few
// shortcuts.
func edges(i, n int) []int {
	row := make([]int, n)
	for j := range row {
		row[j] = math.MaxInt / 2
	}
	random := rand.New(rand.NewPCG(1, uint64(i)))
	for range 2 {
		row[random.IntN(n)] = 10 + random.IntN(90)
	}
	row[(i+1)%n] = 10
	row[i] = 0
	return row
}

// span returns the bounds of a part; owner returns the part that contains k.
func span(part, parts, n int) (from, to int) { return part * n / parts, (part + 1) * n / parts }
func owner(k, parts, n int) int              { return ((k+1)*parts - 1) / n }

// paths returns this rank's block of distances, one slice per row.
func paths(ctx context.Context, grid *chorale.Grid, n int) ([][]int, error) {
	column, err := grid.Line(ctx, 0)
	if err != nil {
		return nil, err
	}
	row, err := grid.Line(ctx, 1)
	if err != nil {
		return nil, err
	}
	top, bottom := span(column.Rank(), column.Size(), n)
	left, right := span(row.Rank(), row.Size(), n)
	var d [][]int
	for i := top; i < bottom; i++ {
		d = append(d, edges(i, n)[left:right])
	}
	fromK, toK := make([]int, right-left), make([]int, bottom-top)
	for k := range n {
		if top <= k && k < bottom {
			copy(fromK, d[k-top])
		}
		if err := chorale.Bcast(ctx, column, fromK, owner(k, column.Size(), n)); err != nil {
			return nil, err
		}
		if left <= k && k < right {
			for i := range toK {
				toK[i] = d[i][k-left]
			}
		}
		if err := chorale.Bcast(ctx, row, toK, owner(k, row.Size(), n)); err != nil {
			return nil, err
		}
		for i := range d {
			for j := range d[i] {
				d[i][j] = min(d[i][j], toK[i]+fromK[j])
			}
		}
	}
	return d, nil
}

// check compares each rank's block with a serial computation on rank 0.
func check(ctx context.Context, grid *chorale.Grid, mine [][]int, n int) error {
	want := make([]int, n*n)
	if grid.Rank() == 0 {
		want = serial(n)
	}
	if err := chorale.Bcast(ctx, grid.Comm, want, 0); err != nil {
		return err
	}
	at := grid.Coordinates(grid.Rank())
	top, _ := span(at[0], grid.Dims[0], n)
	left, _ := span(at[1], grid.Dims[1], n)
	longest := []int{0}
	for i := range mine {
		for j, d := range mine[i] {
			if w := want[(top+i)*n+left+j]; d != w {
				return fmt.Errorf("the path from %d to %d has length %d: want %d", top+i, left+j, d, w)
			}
			longest[0] = max(longest[0], d)
		}
	}
	if err := chorale.Reduce(ctx, grid.Comm, longest, longest, chorale.Max, 0); err != nil || grid.Rank() > 0 {
		return err
	}
	fmt.Printf("%d vertices on a %d×%d grid of ranks: the longest of the shortest paths is %d\n", n, grid.Dims[0], grid.Dims[1], longest[0])
	return nil
}

func serial(n int) (d []int) {
	for i := range n {
		d = append(d, edges(i, n)...)
	}
	for k := range n {
		for i := range n {
			for j := range n {
				d[i*n+j] = min(d[i*n+j], d[i*n+k]+d[k*n+j])
			}
		}
	}
	return d
}
