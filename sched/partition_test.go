package sched_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/chorale-go/chorale/sched"
)

func TestPartitionSaysWhereBlocksBegin(t *testing.T) {
	for _, c := range []struct {
		name    string
		p       sched.Partition
		want    []int // of the blocks from 0 on, some beyond the vector
		padding int
	}{
		{"as even as can be", (&sched.Schedule{Collective: sched.Bcast, P: 4, Blocks: 3}).Partition(8), []int{0, 2, 5, 8, 10, 13, 16, 18}, 0},
		{"blocks of no elements", (&sched.Schedule{Collective: sched.AllReduce, P: 2, Blocks: 4}).Partition(2), []int{0, 0, 1, 1, 2, 2, 3}, 0},
		{"a part per rank", (&sched.Schedule{Collective: sched.AllGather, P: 2, Blocks: 4}).Partition(3), []int{0, 1, 3, 4, 6, 7}, 0},
		{"equally long", (&sched.Schedule{Collective: sched.AllGather, P: 2, Blocks: 4, EqualBlocks: true}).Partition(3), []int{0, 2, 4, 6, 8, 10}, 1},
		{"uneven parts", (&sched.Schedule{Collective: sched.Gather, P: 3, Blocks: 6, Uneven: true}).UnevenPartition([]int{3, 0, 2}), []int{0, 1, 3, 3, 3, 4, 5, 6, 8}, 0},
		{"no blocks", (&sched.Schedule{Collective: sched.Barrier, P: 3}).Partition(0), []int{0, 0}, 0},
	} {
		var got []int
		for b := range c.want {
			got = append(got, c.p.Start(b))
		}
		if !slices.Equal(got, c.want) || c.p.Padding() != c.padding {
			t.Errorf("%s: blocks begin at %v, padding %d: want %v, padding %d", c.name, got, c.p.Padding(), c.want, c.padding)
		}
	}
}

func TestPartsThatAreAllOfOneLengthAreDividedAlikeEitherWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.IntRange(1, 9).Draw(t, "p")
		s := &sched.Schedule{Collective: sched.ReduceScatter, P: p, Blocks: p * rapid.IntRange(1, 5).Draw(t, "blocks per part")}
		count := rapid.IntRange(0, 100).Draw(t, "count")
		even, uneven := s.Partition(count), s.UnevenPartition(slices.Repeat([]int{count}, p))
		for b := range 3 * s.Blocks {
			if a, b := even.Start(b), uneven.Start(b); a != b {
				t.Fatalf("begins at %d and at %d", a, b)
			}
			n := even.Len(sched.Range{Lo: b, Hi: b + 1})
			if shortest := count * p / s.Blocks; n != shortest && n != shortest+1 {
				t.Fatalf("block %d has %d elements, want %d or one more", b, n, shortest)
			}
		}
	})
}
