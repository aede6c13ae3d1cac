package exec

import "github.com/chorale-go/chorale/sched"

// A Layout maps the blocks of a vector to bytes: it is a [sched.Partition] whose
// elements have a size.
type Layout struct {
	partition sched.Partition
	count     int // elements of the vector, or of one part; 0 where parts differ in length
	elem      int // bytes per element
}

// NewLayout returns the layout of a schedule's vector. Count is in elements: of the
// whole vector, or of one part where the vector is one part per rank. Elem is the
// bytes per element.
func NewLayout(s *sched.Schedule, count, elem int) Layout {
	return Layout{s.Partition(count), count, elem}
}

// UnevenLayout returns the layout of a vector in parts that differ in length.
// Counts has one number of elements per rank.
func UnevenLayout(s *sched.Schedule, counts []int, elem int) Layout {
	return Layout{partition: s.UnevenPartition(counts), elem: elem}
}

// At returns the byte at which block b begins, or the vector's length for the block
// after the last. Further blocks, which only scratch has, repeat the vector.
func (l Layout) At(b int) int { return l.partition.Start(b) * l.elem }

// Range returns the bytes of a range of blocks.
func (l Layout) Range(blocks sched.Range) sched.Range {
	return sched.Range{Lo: l.At(blocks.Lo), Hi: l.At(blocks.Hi)}
}
