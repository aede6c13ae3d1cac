// Innerproduct computes the inner product of two vectors, and the angle between
// them. Each rank gets a block of both vectors, and the partial sums are reduced.
//
//	chorale run -n 5 ./examples/innerproduct
//	chorale run -n 5 ./examples/innerproduct -n 1000003
//
// It uses ScatterV, since the blocks may differ in length by one, and AllReduce:
// one call for three sums costs hardly more than for one.
package main

import (
	"context"
	"flag"
	"fmt"
	"math"

	"github.com/chorale-go/chorale"
)

func main() {
	n := flag.Uint("n", 100_000, "the `length` of the vectors")
	flag.Parse()
	chorale.Main(func(ctx context.Context, c *chorale.Comm) error {
		return angle(ctx, c, int(*n))
	})
}

// vectors returns both vectors as a whole.
func vectors(n int) (x, y []float64) {
	x, y = make([]float64, n), make([]float64, n)
	for i := range n {
		x[i], y[i] = 1, float64(i+1)/float64(n)
	}
	return x, y
}

// products returns x·y, x·x and y·y.
func products(x, y []float64) []float64 {
	sums := make([]float64, 3)
	for i := range x {
		sums[0] += x[i] * y[i]
		sums[1] += x[i] * x[i]
		sums[2] += y[i] * y[i]
	}
	return sums
}

func angle(ctx context.Context, c *chorale.Comm, n int) error {
	counts := make([]int, c.Size())
	for rank := range counts {
		counts[rank] = (rank+1)*n/c.Size() - rank*n/c.Size()
	}
	var x, y []float64
	if c.Rank() == 0 {
		x, y = vectors(n)
	}
	myX, myY := make([]float64, counts[c.Rank()]), make([]float64, counts[c.Rank()])
	if err := chorale.ScatterV(ctx, c, myX, x, counts, 0); err != nil {
		return err
	}
	if err := chorale.ScatterV(ctx, c, myY, y, counts, 0); err != nil {
		return err
	}
	sums := products(myX, myY)
	if err := chorale.AllReduce(ctx, c, sums, sums, chorale.Sum); err != nil {
		return err
	}
	if c.Rank() > 0 {
		return nil
	}
	for i, want := range products(x, y) {
		if math.Abs(sums[i]-want) > 1e-12*float64(n) {
			return fmt.Errorf("sum %d is %v: want %v", i, sums[i], want)
		}
	}
	degrees := math.Acos(sums[0]/math.Sqrt(sums[1]*sums[2])) * 180 / math.Pi
	fmt.Printf("%d elements: inner product %.6g, angle %.4f degrees\n", n, sums[0], degrees)
	return nil
}
