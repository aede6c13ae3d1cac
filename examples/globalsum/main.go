// Globalsum adds up the numbers of the ranks, twice: by the tree, which leaves
// the sum on rank 0, and by the butterfly, which leaves it on every rank.
//
//	chorale run -n 7 ./examples/globalsum
//	chorale run -n 7 ./examples/globalsum -algorithm recursive-doubling
//
// It uses Reduce and AllReduce. WithStats says what ran, and counts the messages; the
// schedule has the steps.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/chorale-go/chorale"
)

func main() {
	list := flag.String("algorithm", os.Getenv(forced), "`algorithms` in place of the tree and the butterfly, as in CHORALE_ALGORITHM")
	flag.Parse()
	os.Setenv(forced, "reduce=tree;allreduce=butterfly;"+*list) // of two entries for a collective, the last one counts
	chorale.Main(func(ctx context.Context, c *chorale.Comm) error {
		if err := onRankZero(ctx, c); err != nil {
			return err
		}
		return onEveryRank(ctx, c)
	})
}

// forced is the variable that names the algorithms of calls that name none.
const forced = "CHORALE_ALGORITHM"

func onRankZero(ctx context.Context, c *chorale.Comm) error {
	var sum [1]int
	var stats chorale.Stats
	if err := chorale.Reduce(ctx, c, sum[:], []int{c.Rank()}, chorale.Sum, 0, chorale.WithStats(&stats)); err != nil {
		return err
	}
	took, err := count(ctx, c, "reduce", stats)
	if err == nil && c.Rank() == 0 {
		fmt.Printf("reduce %s: sum %d on rank 0, in %s\n", stats.Algorithm, sum[0], took)
	}
	return err
}

func onEveryRank(ctx context.Context, c *chorale.Comm) error {
	sum := []int{c.Rank()}
	var stats chorale.Stats
	if err := chorale.AllReduce(ctx, c, sum, sum, chorale.Sum, chorale.WithStats(&stats)); err != nil {
		return err
	}
	took, err := count(ctx, c, "allreduce", stats)
	if err == nil && c.Rank() == 0 {
		fmt.Printf("allreduce %s: sum %d on rank 0, in %s\n", stats.Algorithm, sum[0], took)
	} else if err == nil {
		fmt.Printf("allreduce %s: sum %d on rank %d\n", stats.Algorithm, sum[0], c.Rank())
	}
	return err
}

// count returns, on rank 0, the number of steps of the schedule and of messages that all
// ranks together have sent.
func count(ctx context.Context, c *chorale.Comm, collective string, stats chorale.Stats) (string, error) {
	sent := []int{stats.Messages}
	if err := chorale.Reduce(ctx, c, sent, sent, chorale.Sum, 0, plain); err != nil || c.Rank() != 0 {
		return "", err
	}
	steps := stats.Steps // of rank 0, with a schedule from a file
	if s, err := chorale.Schedule(collective, stats.Algorithm, c.Size(), 0, 8); err == nil {
		timeline, err := s.Timeline()
		if err != nil {
			return "", err
		}
		steps = timeline.Steps()
	}
	return counted(steps, "step") + " and " + counted(sent[0], "message"), nil
}

// counted returns a number and what it counts.
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// plain is the algorithm of the calls that count.
var plain = chorale.WithAlgorithm("linear")
