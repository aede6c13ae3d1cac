// Balance balances load. The ranks have items of different costs, and some ranks
// have many. A prefix sum gives each item the total cost of all items before it, and
// thereby the rank that gets it, if each rank is to have the same share of the total.
// The items keep their order.
//
//	chorale run -n 5 ./examples/balance
//	chorale run -n 5 ./examples/balance -items 10000
//
// It uses ExScan for the prefix sums, AllReduce for the total, AllToAll for the
// numbers of items, AllToAllV for the items, which are structs, and GatherV to
// look at the result.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/chorale-go/chorale"
)

// An item is a piece of work.
type item struct{ Rank, Number, Cost int }

func main() {
	n := flag.Uint("items", 1000, "the largest `number` of items of a rank at first")
	flag.Parse()
	chorale.Main(func(ctx context.Context, c *chorale.Comm) error {
		mine, err := balance(ctx, c, items(c.Rank(), int(*n)))
		if err != nil {
			return err
		}
		return check(ctx, c, mine, int(*n))
	})
}

// items returns the items that a rank has at first.
func items(rank, n int) []item {
	random := rand.New(rand.NewPCG(1, uint64(rank)))
	mine := make([]item, random.IntN(n+1))
	for i := range mine {
		mine[i] = item{rank, i, 1 + int(100*random.ExpFloat64())}
	}
	return mine
}

func cost(items []item) (total int) {
	for _, it := range items {
		total += it.Cost
	}
	return total
}

// balance moves the items, and returns those that this rank has then.
func balance(ctx context.Context, c *chorale.Comm, mine []item) ([]item, error) {
	before, total := []int{0}, []int{cost(mine)}
	if err := chorale.ExScan(ctx, c, before, total, chorale.Sum); err != nil {
		return nil, err
	}
	if err := chorale.AllReduce(ctx, c, total, total, chorale.Sum); err != nil {
		return nil, err
	}
	send, receive := make([]int, c.Size()), make([]int, c.Size())
	for _, it := range mine {
		middle := 2*before[0] + it.Cost // of the item, in half units
		send[middle*c.Size()/(2*total[0])]++
		before[0] += it.Cost
	}
	if err := chorale.AllToAll(ctx, c, receive, send); err != nil {
		return nil, err
	}
	n := 0
	for _, k := range receive {
		n += k
	}
	got := make([]item, n)
	return got, chorale.AllToAllV(ctx, c, got, mine, receive, send)
}

// check compares the items with those that the ranks had at first, on rank 0.
func check(ctx context.Context, c *chorale.Comm, mine []item, n int) error {
	p := c.Size()
	counts := make([]int, p)
	if err := chorale.AllGather(ctx, c, counts, []int{len(mine)}); err != nil {
		return err
	}
	var want []item
	had, largest := 0, 0 // the largest costs of a rank and of an item
	for rank := range p {
		before := items(rank, n)
		had = max(had, cost(before))
		for _, it := range before {
			largest = max(largest, it.Cost)
		}
		want = append(want, before...)
	}
	got := make([]item, len(want))
	if err := chorale.GatherV(ctx, c, got, mine, counts, 0); err != nil || c.Rank() > 0 {
		return err
	}
	if !slices.Equal(got, want) {
		return errors.New("items are lost, or out of order")
	}
	total, has := cost(want), 0
	for _, k := range counts {
		has = max(has, cost(got[:k]))
		got = got[k:]
	}
	if has > total/p+largest+1 {
		return fmt.Errorf("the busiest rank has work for %d: want the mean, %d, and at most one item more", has, total/p)
	}
	mean := float64(total) / float64(p)
	fmt.Printf("%d items: the busiest rank had %.3f times the mean, and has %.3f times\n", len(want), float64(had)/mean, float64(has)/mean)
	return nil
}
