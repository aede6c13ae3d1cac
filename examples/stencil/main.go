// Stencil computes how heat spreads over a square plate, one edge of which is hot. Each
// rank has some rows of the plate, in a window: memory that the other ranks of its host
// read directly. In each step, a point becomes the mean of its four neighbors, and a rank
// reads the rows above its first one and below its last one, the halo, in the parts of its
// neighbors. No row is sent.
//
//	chorale run -n 5 ./examples/stencil
//	chorale run -n 5 ./examples/stencil -n 200 -steps 1000
//
// It uses NewWindow, Local and Fence; AllReduce to look at the result. The ranks have to
// share memory.
package main

import (
	"context"
	"flag"
	"fmt"
	"math"

	"github.com/chorale-go/chorale"
)

func main() {
	n := flag.Uint("n", 64, "the `number` of rows and of columns of the plate")
	steps := flag.Uint("steps", 200, "the `number` of steps")
	flag.Parse()
	chorale.Main(func(ctx context.Context, c *chorale.Comm) error {
		return run(ctx, c, int(*n), int(*steps))
	})
}

// rows returns the rows of a rank: lo ≤ row < hi.
func rows(n, size, rank int) (lo, hi int) { return n * rank / size, n * (rank + 1) / size }

func run(ctx context.Context, c *chorale.Comm, n, steps int) error {
	lo, hi := rows(n, c.Size(), c.Rank())
	// Each part holds the rows twice: before a step, and after it.
	w, err := chorale.NewWindow[float64](ctx, c, 2*(hi-lo)*n)
	if err != nil {
		return err
	}
	// at returns a row of the plate in a step, in the part of the rank that has it.
	at := func(step, row int) []float64 {
		rank := ((row+1)*c.Size() - 1) / n
		lo, hi := rows(n, c.Size(), rank)
		return w.Local(rank)[(step%2*(hi-lo)+row-lo)*n:][:n]
	}
	hot, cold := edge(n, 100), edge(n, 0)
	for step := range steps {
		for row := lo; row < hi; row++ {
			above, below := hot, cold // beyond the plate
			if row > 0 {
				above = at(step, row-1)
			}
			if row < n-1 {
				below = at(step, row+1)
			}
			relax(at(step+1, row), above, at(step, row), below)
		}
		if err := w.Fence(ctx); err != nil { // the neighbors have read this step, and written the next
			return err
		}
	}
	heat := []float64{0}
	for row := lo; row < hi; row++ {
		for _, t := range at(steps, row) {
			heat[0] += t
		}
	}
	if err := chorale.AllReduce(ctx, c, heat, heat, chorale.Sum); err != nil {
		return err
	}
	if c.Rank() == 0 {
		if want := serial(n, steps); math.Abs(heat[0]-want) > 1e-9*want {
			return fmt.Errorf("the heat of the plate is %v, want %v", heat[0], want)
		}
		fmt.Printf("a plate of %d×%d points: %.1f degrees on average after %d steps\n", n, n, heat[0]/float64(n*n), steps)
	}
	return w.Free(ctx)
}

// edge returns the row beyond an edge of the plate.
func edge(n int, degrees float64) []float64 {
	row := make([]float64, n)
	for i := range row {
		row[i] = degrees
	}
	return row
}

// relax sets a row to the means of the neighbors. Left and right of the plate are 0 degrees.
func relax(next, above, row, below []float64) {
	for i := range next {
		sum := above[i] + below[i]
		if i > 0 {
			sum += row[i-1]
		}
		if i < len(row)-1 {
			sum += row[i+1]
		}
		next[i] = sum / 4
	}
}

// serial returns the heat of the whole plate.
func serial(n, steps int) (heat float64) {
	var plate [2][][]float64
	for k := range plate {
		for range n {
			plate[k] = append(plate[k], make([]float64, n))
		}
	}
	hot, cold := edge(n, 100), edge(n, 0)
	for step := range steps {
		now, next := plate[step%2], plate[(step+1)%2]
		for row := range next {
			above, below := hot, cold
			if row > 0 {
				above = now[row-1]
			}
			if row < n-1 {
				below = now[row+1]
			}
			relax(next[row], above, now[row], below)
		}
	}
	for _, row := range plate[steps%2] {
		for _, t := range row {
			heat += t
		}
	}
	return heat
}
