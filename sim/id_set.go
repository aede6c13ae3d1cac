package sim

import (
	"math/bits"
	"slices"
)

// An idSet is a set of ranks, or of links: those that begin a step in the next
// round, or that are asked to carry several messages in this one.
type idSet struct {
	ids    []int32 // each once
	words  int     // of a bitmap of all that there are
	bitmap []uint64
}

// newIDSet returns an empty set of ids below a limit, with room for some.
func newIDSet(limit, room int) idSet {
	return idSet{ids: make([]int32, 0, room), words: (limit + 63) / 64}
}

func (s *idSet) add(id int32) { s.ids = append(s.ids, id) }

// take empties the set, and returns its ids in ascending order. The set keeps
// the memory of a list that is no longer in use. Time is linear in the number of
// ids where they are many, because they are sorted by a bitmap then.
func (s *idSet) take(unused []int32) []int32 {
	sorted := s.ids
	s.ids = unused[:0]
	if len(sorted) < s.words {
		slices.Sort(sorted)
		return sorted
	}
	if s.bitmap == nil {
		s.bitmap = make([]uint64, s.words)
	}
	for _, id := range sorted {
		s.bitmap[id/64] |= 1 << (id % 64)
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
