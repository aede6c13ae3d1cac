package exec

import "github.com/chorale-go/chorale/sched"

// A Layout says where the blocks of a vector lie. The zero length is legal for
// any block, and so for the whole.
type Layout struct {
	blocks int // of the vector
	parts  int // 1, or one per rank
	count  int // elements of a part
	elem   int // bytes per element
}

// NewLayout returns the layout of a schedule's vector. Count is in elements:
// of the whole vector where every rank holds all of it, and of one part where
// the vector is one part per rank. Blocks that do not divide it evenly differ
// by one element at most.
func NewLayout(s *sched.Schedule, count, elem int) Layout {
	l := Layout{blocks: s.Blocks, parts: 1, count: count, elem: elem}
	if s.Parted() {
		l.parts = s.P
	}
	return l
}

// At returns the byte at which block b begins, or the vector's length for the
// block after the last. Further blocks, of scratch, repeat the vector.
func (l Layout) At(b int) int {
	if l.blocks == 0 {
		return 0
	}
	whole, b := b/l.blocks, b%l.blocks
	perPart := l.blocks / l.parts
	part, b := b/perPart, b%perPart
	return ((whole*l.parts+part)*l.count + b*l.count/perPart) * l.elem
}
