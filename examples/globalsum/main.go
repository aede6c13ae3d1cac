// Globalsum adds up the numbers of the ranks, twice: by the tree, which leaves
// the sum on rank 0, and by the butterfly, which leaves it on every rank.
//
//	chorale run -n 7 ./examples/globalsum
//	chorale run -n 7 ./examples/globalsum -algorithm recursive-doubling
//
// It uses Reduce and AllReduce, and counts steps and messages with WithStats.
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

// choose puts a named algorithm in the place of the one that it can replace.
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
	steps, messages, err := count(ctx, c, stats)
	if err != nil || c.Rank() != 0 {
		return err
	}
	fmt.Printf("reduce %s: sum %d on rank 0, in %d steps and %d messages\n", algorithm, sum[0], steps, messages)
	return nil
}

func onEveryRank(ctx context.Context, c *chorale.Comm, algorithm string) error {
	sum := []int{c.Rank()}
	var stats chorale.Stats
	if err := chorale.AllReduce(ctx, c, sum, sum, chorale.Sum,
		chorale.WithAlgorithm(algorithm), chorale.WithStats(&stats)); err != nil {
		return err
	}
	steps, messages, err := count(ctx, c, stats)
	if err != nil {
		return err
	}
	if c.Rank() == 0 {
		fmt.Printf("allreduce %s: sum %d on rank 0, in %d steps and %d messages\n", algorithm, sum[0], steps, messages)
	} else {
		fmt.Printf("allreduce %s: sum %d on rank %d\n", algorithm, sum[0], c.Rank())
	}
	return nil
}

// count adds up all ranks' messages, and takes the steps of the busiest rank.
func count(ctx context.Context, c *chorale.Comm, stats chorale.Stats) (steps, messages int, err error) {
	most, total := []int{stats.Steps}, []int{stats.Messages}
	if err := chorale.Reduce(ctx, c, most, most, chorale.Max, 0); err != nil {
		return 0, 0, err
	}
	err = chorale.Reduce(ctx, c, total, total, chorale.Sum, 0)
	return most[0], total[0], err
}
