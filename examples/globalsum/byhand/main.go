// Byhand adds up the numbers of the ranks as globalsum does, by the tree and by
// the butterfly, but with point-to-point messages alone. It spells out the work of
// Reduce and AllReduce.
//
//	chorale run -n 7 ./examples/globalsum/byhand
//	chorale run -n 7 ./examples/globalsum/byhand -messages
//
// It uses Send, Recv and SendRecv. The tag is the number of the step.
package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/chorale-go/chorale"
)

var messages = flag.Bool("messages", false, "print every message, where it is sent")

func main() {
	flag.Parse()
	chorale.Main(func(ctx context.Context, c *chorale.Comm) error {
		sum, err := tree(ctx, c)
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Printf("tree: sum %d on rank 0\n", sum)
		}
		if sum, err = butterfly(ctx, c); err != nil {
			return err
		}
		fmt.Printf("butterfly: sum %d on rank %d\n", sum, c.Rank())
		return nil
	})
}

// tree leaves the sum on rank 0. In each step, the upper half of the active ranks sends
// its sums to the lower half, and is done. If the number of active ranks is odd, the
// rank in the middle is idle in that step.
func tree(ctx context.Context, c *chorale.Comm) (int, error) {
	sum, got := []int{c.Rank()}, []int{0}
	active := c.Size()
	for step := 1; active > 1; step++ {
		half, keep := active/2, (active+1)/2
		switch rank := c.Rank(); {
		case rank >= keep:
			logMessage("tree", step, rank, rank-keep)
			return 0, chorale.Send(ctx, c, sum, rank-keep, step)
		case rank < half:
			if _, err := chorale.Recv(ctx, c, got, rank+keep, step); err != nil {
				return 0, err
			}
			sum[0] += got[0]
		}
		active = keep
	}
	return sum[0], nil
}

// butterfly leaves the sum on every rank. The groups of ranks double in each step: each
// rank exchanges sums with its partner in the other half of the group. If the last
// group is not full, some ranks of its lower half have no partner; the first rank of
// the group sends them the sum.
func butterfly(ctx context.Context, c *chorale.Comm) (int, error) {
	sum, got := []int{c.Rank()}, []int{0}
	for step, half := 1, 1; half < c.Size(); step, half = step+1, 2*half {
		rank, partner := c.Rank(), c.Rank()^half
		first := rank &^ (2*half - 1)
		switch {
		case first+half >= c.Size(): // the group has no other half
		case partner >= c.Size():
			if _, err := chorale.Recv(ctx, c, sum, first, step); err != nil {
				return 0, err
			}
		default:
			logMessage("butterfly", step, rank, partner)
			if _, err := chorale.SendRecv(ctx, c, got, partner, sum, partner, step); err != nil {
				return 0, err
			}
			sum[0] += got[0]
			for alone := c.Size() - half; rank == first && alone < first+half; alone++ {
				logMessage("butterfly", step, rank, alone)
				if err := chorale.Send(ctx, c, sum, alone, step); err != nil {
					return 0, err
				}
			}
		}
	}
	return sum[0], nil
}

// logMessage prints a message, if -messages is set.
func logMessage(how string, step, from, to int) {
	if *messages {
		fmt.Printf("%s, step %d: %d→%d\n", how, step, from, to)
	}
}
