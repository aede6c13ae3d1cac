// Gauss solves a system of linear equations by Gaussian elimination with partial
// pivoting. Rank r has the equations r, r+p, r+2p and so on, so that all ranks
// have work until the end. No rows are interchanged: each step chooses its pivot
// from the rows that have not been one.
//
//	chorale run -n 5 ./examples/gauss
//	chorale run -n 5 ./examples/gauss -n 200
//
// It uses AllReduce with MaxLoc, which finds the pivot and its row, and
// Bcast, from the rank that has the pivot row.
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
	n := flag.Uint("n", 60, "the `number` of equations")
	flag.Parse()
	chorale.Main(func(ctx context.Context, c *chorale.Comm) error {
		var mine [][]float64
		for i := c.Rank(); i < int(*n); i += c.Size() {
			mine = append(mine, equation(i, int(*n)))
		}
		x, err := solve(ctx, c, mine, int(*n))
		if err != nil {
			return err
		}
		for j := range x {
			if math.Abs(x[j]-solution(j)) > 1e-6 {
				return fmt.Errorf("x[%d] is %v: want %v", j, x[j], solution(j))
			}
		}
		if c.Rank() == 0 {
			fmt.Printf("%d equations: x[j] = j + 1, as it should be\n", *n)
		}
		return nil
	})
}

func solution(j int) float64 { return float64(j + 1) }

// equation returns a row of the matrix, with its right side at the end. The right side
// is computed from the solution.
func equation(i, n int) []float64 {
	random := rand.New(rand.NewPCG(1, uint64(i)))
	row := make([]float64, n+1)
	for j := range n {
		row[j] = 2*random.Float64() - 1
		row[n] += row[j] * solution(j)
	}
	return row
}

// solve returns the solution. Row l of mine is equation l·p + rank.
func solve(ctx context.Context, c *chorale.Comm, mine [][]float64, n int) ([]float64, error) {
	p := c.Size()
	used := make([]bool, len(mine))
	pivots := make([]int, n) // the equation that is the pivot of each step
	pivot := make([]float64, n+1)
	for k := range n {
		best := []chorale.Loc[float64]{{Value: -1, Index: n}}
		for l, row := range mine {
			if v := math.Abs(row[k]); !used[l] && v > best[0].Value {
				best[0] = chorale.Loc[float64]{Value: v, Index: l*p + c.Rank()}
			}
		}
		if err := chorale.AllReduce(ctx, c, best, best, chorale.MaxLoc); err != nil {
			return nil, err
		}
		if best[0].Value <= 0 {
			return nil, fmt.Errorf("the matrix is singular: column %d has no pivot", k)
		}
		pivots[k] = best[0].Index
		owner, l := pivots[k]%p, pivots[k]/p
		if owner == c.Rank() {
			used[l] = true
			copy(pivot, mine[l])
		}
		if err := chorale.Bcast(ctx, c, pivot[k:], owner); err != nil {
			return nil, err
		}
		for l, row := range mine {
			if f := row[k] / pivot[k]; !used[l] {
				for j := k; j <= n; j++ {
					row[j] -= f * pivot[j]
				}
			}
		}
	}
	x := make([]float64, n)
	for k := n - 1; k >= 0; k-- {
		owner, l := pivots[k]%p, pivots[k]/p
		if owner == c.Rank() {
			x[k] = mine[l][n] / mine[l][k]
		}
		if err := chorale.Bcast(ctx, c, x[k:k+1], owner); err != nil {
			return nil, err
		}
		for _, row := range mine {
			row[n] -= row[k] * x[k]
		}
	}
	return x, nil
}
