// Globalsum adds up the numbers of the ranks, twice: by the tree, which leaves
// the sum on rank 0, and by the butterfly, which leaves it on every rank.
//
//	chorale run -n 7 ./examples/globalsum
//	chorale run -n 7 ./examples/globalsum -algorithm recursive-doubling
//
// It uses Reduce and AllReduce. WithStats counts the messages, and the schedule
// has the steps.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/chorale-go/chorale"
)

func main() {
	name := flag.String("algorithm", os.Getenv("CHORALE_ALGORITHM"), "a reduce or allreduce `algorithm` in place of the tree or the butterfly")
	flag.Parse()
	chorale.Main(func(ctx context.Context, c *chorale.Comm) error {
		reduce, allreduce, err := choose(*name)
		if err != nil {
			return err
		}
		if err := onRankZero(ctx, c, reduce); err != nil {
			return err
		}
		return onEveryRank(ctx, c, allreduce)
	})
}

// choose replaces the default algorithm of the collective that has the named one.
func choose(name string) (reduce, allreduce string, err error) {
	reduce, allreduce = "tree", "butterfly"
	if name == "" {
		return reduce, allreduce, nil
	}
	base, _, _ := strings.Cut(name, ",")
	known := false
	for collective, choice := range map[string]*string{"reduce": &reduce, "allreduce": &allreduce} {
		if slices.Contains(chorale.Algorithms(collective), base) {
			*choice, known = name, true
		}
	}
	if !known {
		return "", "", fmt.Errorf("globalsum: no algorithm %q: reduce has %s; allreduce has %s", name,
			strings.Join(chorale.Algorithms("reduce"), ", "), strings.Join(chorale.Algorithms("allreduce"), ", "))
	}
	return reduce, allreduce, nil
}

func onRankZero(ctx context.Context, c *chorale.Comm, algorithm string) error {
	var sum [1]int
	var stats chorale.Stats
	if err := chorale.Reduce(ctx, c, sum[:], []int{c.Rank()}, chorale.Sum, 0,
		chorale.WithAlgorithm(algorithm), chorale.WithStats(&stats)); err != nil {
		return err
	}
	took, err := count(ctx, c, "reduce", algorithm, stats)
	if err == nil && c.Rank() == 0 {
		fmt.Printf("reduce %s: sum %d on rank 0, in %s\n", algorithm, sum[0], took)
	}
	return err
}

func onEveryRank(ctx context.Context, c *chorale.Comm, algorithm string) error {
	sum := []int{c.Rank()}
	var stats chorale.Stats
	if err := chorale.AllReduce(ctx, c, sum, sum, chorale.Sum,
		chorale.WithAlgorithm(algorithm), chorale.WithStats(&stats)); err != nil {
		return err
	}
	took, err := count(ctx, c, "allreduce", algorithm, stats)
	if err == nil && c.Rank() == 0 {
		fmt.Printf("allreduce %s: sum %d on rank 0, in %s\n", algorithm, sum[0], took)
	} else if err == nil {
		fmt.Printf("allreduce %s: sum %d on rank %d\n", algorithm, sum[0], c.Rank())
	}
	return err
}

// count returns, on rank 0, the number of steps of the schedule and of messages that
// all ranks together have sent.
func count(ctx context.Context, c *chorale.Comm, collective, algorithm string, stats chorale.Stats) (string, error) {
	sent := []int{stats.Messages}
	if err := chorale.Reduce(ctx, c, sent, sent, chorale.Sum, 0); err != nil || c.Rank() != 0 {
		return "", err
	}
	s, err := chorale.Schedule(collective, algorithm, c.Size(), 0, 8)
	if err != nil {
		return "", err
	}
	timeline, err := s.Timeline()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d steps and %d messages", timeline.Steps(), sent[0]), nil
}
