// Samplesort sorts keys that are distributed over the ranks. Each rank sorts its own
// keys and contributes a sample. The samples of all ranks determine splitters, so that
// the parts have about the same size for any distribution of the keys. Each rank then
// gets one part.
//
//	chorale run -n 5 ./examples/samplesort
//	chorale run -n 5 ./examples/samplesort -n 2000000
//
// It uses AllGather for the samples, AllToAll for the numbers of keys, AllToAllV
// for the keys, and GatherV to look at the result.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/chorale-go/chorale"
)

func main() {
	n := flag.Uint("n", 50_000, "the `number` of keys")
	flag.Parse()
	chorale.Main(func(ctx context.Context, c *chorale.Comm) error {
		mine, err := sorted(ctx, c, keys(int(*n), c.Rank(), c.Size()))
		if err != nil {
			return err
		}
		return check(ctx, c, mine, int(*n))
	})
}

// keys returns the keys of one rank. Most keys are near 0.
func keys(n, rank, ranks int) []int {
	random := rand.New(rand.NewPCG(1, 2))
	var mine []int
	for i := range n {
		if key := int(1e6 * random.NormFloat64()); i%ranks == rank {
			mine = append(mine, key)
		}
	}
	return mine
}

// sorted returns this rank's part of all keys in order.
func sorted(ctx context.Context, c *chorale.Comm, mine []int) ([]int, error) {
	p := c.Size()
	slices.Sort(mine)
	sample := make([]int, p)
	for i := range sample {
		if len(mine) > 0 { // any sample is correct; this one is balanced
			sample[i] = mine[i*len(mine)/p]
		}
	}
	samples := make([]int, p*p)
	if err := chorale.AllGather(ctx, c, samples, sample); err != nil {
		return nil, err
	}
	slices.Sort(samples)

	send, receive := make([]int, p), make([]int, p)
	begin := 0
	for rank := range send {
		end := len(mine)
		if rank < p-1 {
			end = sort.SearchInts(mine, samples[(rank+1)*p])
		}
		send[rank] = end - begin
		begin = end
	}
	if err := chorale.AllToAll(ctx, c, receive, send); err != nil {
		return nil, err
	}
	part := make([]int, sum(receive))
	if err := chorale.AllToAllV(ctx, c, part, mine, receive, send); err != nil {
		return nil, err
	}
	slices.Sort(part)
	return part, nil
}

func sum(counts []int) (total int) {
	for _, n := range counts {
		total += n
	}
	return total
}

// check compares the parts of all ranks with a serial sort, on rank 0.
func check(ctx context.Context, c *chorale.Comm, part []int, n int) error {
	counts := make([]int, c.Size())
	if err := chorale.AllGather(ctx, c, counts, []int{len(part)}); err != nil {
		return err
	}
	all := make([]int, sum(counts))
	if err := chorale.GatherV(ctx, c, all, part, counts, 0); err != nil || c.Rank() > 0 {
		return err
	}
	want := keys(n, 0, 1)
	slices.Sort(want)
	if !slices.Equal(all, want) {
		return fmt.Errorf("the keys are not sorted")
	}
	fmt.Printf("%d keys sorted: the largest part has %.2f times the mean\n", n, float64(slices.Max(counts)*c.Size())/float64(max(n, 1)))
	return nil
}
