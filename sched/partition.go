package sched

// A Partition says at which element each block of a vector begins. The parts of
// a partitioned vector follow each other. The blocks of one part differ by at
// most one element in length; blocks of no elements are legal. The zero value
// is the partition of a vector without blocks.
type Partition struct {
	blocks  int   // of the vector
	perPart int   // blocks of one part
	stride  int   // elements from the beginning of one part to that of the next, where that is one number
	starts  []int // where each part begins, and where the last ends; nil where stride says it
	total   int   // elements of the vector
	padding int
}

// Partition divides a vector into the blocks of the schedule. Count is in
// elements: of the whole vector, or of one rank's part where the vector is
// [Schedule.Partitioned]. Where the schedule wants EqualBlocks, every part gets
// as many elements more as make its blocks equally long: see
// [Partition.Padding].
func (s *Schedule) Partition(count int) Partition {
	parts := 1
	if s.Partitioned() {
		parts = s.P
	}
	p := Partition{blocks: s.Blocks, perPart: s.Blocks / parts}
	if s.EqualBlocks && p.perPart > 0 && count%p.perPart > 0 {
		p.padding = p.perPart - count%p.perPart
	}
	p.stride = count + p.padding
	p.total = parts * p.stride
	return p
}

// UnevenPartition divides a vector whose parts differ in length into the blocks
// of the schedule. Counts has the number of elements of each rank's part.
func (s *Schedule) UnevenPartition(counts []int) Partition {
	p := Partition{blocks: s.Blocks, perPart: s.Blocks / len(counts), starts: make([]int, len(counts)+1)}
	for r, n := range counts {
		p.starts[r+1] = p.starts[r] + n
	}
	p.total = p.starts[len(counts)]
	return p
}

// Start returns the element at which a block begins. The block after the last
// begins at the vector's length. Blocks beyond it, which Scratch may have,
// repeat the vector.
func (p *Partition) Start(block int) int {
	if p.blocks == 0 {
		return 0
	}
	before := 0
	if block >= p.blocks {
		before = block / p.blocks * p.total
		block %= p.blocks
	}
	part, within := block, 0
	if p.perPart > 1 {
		part, within = block/p.perPart, block%p.perPart
	}
	start, length := part*p.stride, p.stride
	if p.starts != nil {
		start, length = p.starts[part], p.starts[part+1]-p.starts[part]
	}
	if within > 0 {
		start += within * length / p.perPart
	}
	return before + start
}

// Len returns the number of elements of a range of blocks.
func (p *Partition) Len(r Range) int { return p.Start(r.Hi) - p.Start(r.Lo) }

// Padding returns the number of elements at the end of each part that only make
// its blocks equally long.
func (p *Partition) Padding() int { return p.padding }
