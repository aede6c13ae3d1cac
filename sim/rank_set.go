package sim

import (
	"math/bits"
	"slices"
)

// A rankSet is the ranks that begin a step in the next round.
type rankSet struct {
	ranks  []int32  // each once
	bitmap []uint64 // all zero, but in take
}

func newRankSet(ranks int) rankSet {
	return rankSet{ranks: make([]int32, 0, ranks), bitmap: make([]uint64, (ranks+63)/64)}
}

func (s *rankSet) add(rank int32) { s.ranks = append(s.ranks, rank) }

// take empties the set, and returns its ranks in ascending order. The set keeps
// the memory of a list that is no longer in use. Time is linear in the number of
// ranks where they are many, because they are sorted by a bitmap then.
func (s *rankSet) take(unused []int32) []int32 {
	sorted := s.ranks
	s.ranks = unused[:0]
	if len(sorted) < len(s.bitmap) {
		slices.Sort(sorted)
		return sorted
	}
	for _, rank := range sorted {
		s.bitmap[rank/64] |= 1 << (rank % 64)
	}
	sorted = sorted[:0]
	for i, word := range s.bitmap {
		for ; word != 0; word &= word - 1 {
			sorted = append(sorted, int32(64*i+bits.TrailingZeros64(word)))
		}
		s.bitmap[i] = 0
	}
	return sorted
}
