package exec

import "github.com/chorale-go/chorale/sched"

// A Layout maps the blocks of a vector to bytes. A block may be empty, and so may
// the whole vector.
type Layout struct {
	blocks int   // of the vector
	starts []int // the element at which each part begins, and that after the last part
	elem   int   // bytes per element
	gap    int   // elements at the end of each part that pad it, so that its blocks have equal lengths
}

// NewLayout returns the layout of a schedule's vector. Count is in elements: of the
// whole vector where every rank holds all of it, and of one part where the vector
// is one part per rank. If the blocks do not divide the elements evenly, their
// lengths differ by one element at most; if the schedule needs EqualBlocks, the
// parts are padded instead. Elem is the bytes per element.
func NewLayout(s *sched.Schedule, count, elem int) Layout {
	parts := 1
	if s.Partitioned() {
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

// UnevenLayout returns the layout of a vector in parts that differ in length.
// Counts has one number of elements per rank.
func UnevenLayout(s *sched.Schedule, counts []int, elem int) Layout {
	starts := make([]int, len(counts)+1)
	for r, n := range counts {
		starts[r+1] = starts[r] + n
	}
	return Layout{blocks: s.Blocks, starts: starts, elem: elem}
}

// At returns the byte at which block b begins, or the vector's length for the block
// after the last. Further blocks, which only scratch has, repeat the vector.
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

// Range returns the bytes of a range of blocks.
func (l Layout) Range(blocks sched.Range) sched.Range {
	return sched.Range{Lo: l.At(blocks.Lo), Hi: l.At(blocks.Hi)}
}
