package exec

import "github.com/chorale-go/chorale/sched"

// A Layout says where the blocks of a vector lie. The zero length is legal for
// any block, and so for the whole.
type Layout struct {
	blocks int   // of the vector
	starts []int // where each part begins, and where the last one ends; in elements
	elem   int   // bytes per element
	gap    int   // elements at the end of each part that only make its blocks equally long
}

// NewLayout returns the layout of a schedule's vector. Count is in elements:
// of the whole vector where every rank holds all of it, and of one part where
// the vector is one part per rank. Blocks that do not divide it evenly differ
// by one element at most; where the schedule wants EqualBlocks, the parts are
// laid out longer than they are.
func NewLayout(s *sched.Schedule, count, elem int) Layout {
	parts := 1
	if s.Parted() {
		parts = s.P
	}
	gap := 0
	if perPart := s.Blocks / parts; s.EqualBlocks && perPart > 0 && count%perPart > 0 {
		gap = perPart - count%perPart
	}
	starts := make([]int, parts+1)
	for r := range starts {
		starts[r] = r * (count + gap)
	}
	return Layout{s.Blocks, starts, elem, gap}
}

// UnevenLayout returns the layout of a vector in parts that differ in length:
// counts has one number of elements per rank.
func UnevenLayout(s *sched.Schedule, counts []int, elem int) Layout {
	starts := make([]int, len(counts)+1)
	for r, n := range counts {
		starts[r+1] = starts[r] + n
	}
	return Layout{blocks: s.Blocks, starts: starts, elem: elem}
}

// At returns the byte at which block b begins, or the vector's length for the
// block after the last. Further blocks, of scratch, repeat the vector.
func (l Layout) At(b int) int {
	if l.blocks == 0 {
		return 0
	}
	parts := len(l.starts) - 1
	whole, b := b/l.blocks, b%l.blocks
	perPart := l.blocks / parts
	part, b := b/perPart, b%perPart
	count := l.starts[part+1] - l.starts[part]
	return (whole*l.starts[parts] + l.starts[part] + b*count/perPart) * l.elem
}
