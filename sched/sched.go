package sched

import (
	"fmt"
	"sync"
)

// A Buffer is one of the three buffers that a rank's program can name.
type Buffer uint8

const (
	In      Buffer = iota // the caller's source; a program only reads it
	Out                   // the caller's destination
	Scratch               // working space, which the executor provides
)

var bufferNames = [...]string{"in", "out", "scratch"}

func (b Buffer) String() string {
	if int(b) < len(bufferNames) {
		return bufferNames[b]
	}
	return fmt.Sprintf("Buffer(%d)", uint8(b))
}

// ParseBuffer is the inverse of [Buffer.String].
func ParseBuffer(s string) (Buffer, error) {
	for i, name := range bufferNames {
		if s == name {
			return Buffer(i), nil
		}
	}
	return 0, &UnknownError{What: "buffer", Name: s, Known: []string{"in", "out", "scratch"}}
}

// A Combine says how incoming blocks change the blocks that they land on: [Replace] puts
// them in their place, [Left] combines them from the left, as incoming ⊕ held, and [Right]
// from the right, as held ⊕ incoming. It matters where ⊕ does not commute.
type Combine uint8

const (
	Replace Combine = iota // held becomes incoming
	Left                   // held becomes incoming ⊕ held
	Right                  // held becomes held ⊕ incoming
)

var combineNames = [...]string{"", "left", "right"}

// String returns "" for Replace, and "left" or "right".
func (c Combine) String() string {
	if int(c) < len(combineNames) {
		return combineNames[c]
	}
	return fmt.Sprintf("Combine(%d)", uint8(c))
}

// ParseCombine is the inverse of [Combine.String].
func ParseCombine(s string) (Combine, error) {
	for i, name := range combineNames {
		if s == name {
			return Combine(i), nil
		}
	}
	return 0, fmt.Errorf("no way to combine %q: want left or right, or nothing to replace", s)
}

// A Range is the half-open range of blocks Lo, Lo+1, …, Hi-1.
type Range struct{ Lo, Hi int }

// Len returns the number of blocks in r.
func (r Range) Len() int { return r.Hi - r.Lo }

// Overlaps reports whether r and s have a block in common.
func (r Range) Overlaps(s Range) bool { return max(r.Lo, s.Lo) < min(r.Hi, s.Hi) }

// Contains reports whether every block of s is in r.
func (r Range) Contains(s Range) bool { return s.Len() == 0 || r.Lo <= s.Lo && s.Hi <= r.Hi }

func (r Range) String() string { return fmt.Sprintf("%d..%d", r.Lo, r.Hi) }

// A Copy moves blocks within a rank.
type Copy struct {
	Src    Buffer
	Blocks Range // read from Src
	Dst    Buffer
	At     int // the first block written in Dst
	How    Combine
}

// Into returns the range of Dst that c writes.
func (c Copy) Into() Range { return Range{c.At, c.At + c.Blocks.Len()} }

// A Send sends blocks to one rank, or the same blocks to several: a multicast,
// which is written once in shared memory, and is several messages on a wire.
type Send struct {
	To     []int
	Src    Buffer
	Blocks Range
}

// A Recv receives the next message from a rank.
type Recv struct {
	From   int
	Dst    Buffer
	Blocks Range // written in Dst
	How    Combine
}

// A Step is the operations that a rank does at once. Its copies come first, in
// the order listed. Then its sends read what the buffers hold, while its receives
// land. Receives that write the same blocks do so in the order listed, whatever
// arrives first. A receive never writes what the same step sends.
type Step struct {
	Copies []Copy
	Sends  []Send
	Recvs  []Recv
}

// Ordered reports whether receive k of the step must wait for the receives
// listed before it. It must if one of them writes a block that it writes too.
func (s Step) Ordered(k int) bool {
	r := s.Recvs[k]
	for _, earlier := range s.Recvs[:k] {
		if earlier.Dst == r.Dst && earlier.Blocks.Overlaps(r.Blocks) {
			return true
		}
	}
	return false
}

// empty reports whether the step does nothing.
func (s Step) empty() bool { return len(s.Copies)+len(s.Sends)+len(s.Recvs) == 0 }

// A Program is one rank's part of a schedule. Its steps follow each other: a
// step begins when the rank's previous step is complete, that is, when the
// receivers have taken all its messages and all its receives have landed.
type Program []Step

// A Schedule is a collective together with a program for each rank.
//
// The vector of the collective is cut into Blocks blocks, as evenly as possible;
// blocks of length zero are legal: see [Schedule.Partition]. In and Out share one
// numbering of blocks. Where the vector is one part per rank, block b belongs to
// rank b·P/Blocks, and a rank that holds only its own part has only those blocks:
// see [Schedule.Extent].
//
// A schedule is a value: its methods do not change it, and may be called by many
// goroutines at once if Make may.
type Schedule struct {
	Collective  Collective
	Algorithm   string // a name, and parameters that differ from the defaults; see package algo
	P           int    // the number of ranks
	Root        int    // the root, where the collective has one; the distance of a shift; 0 elsewhere
	Blocks      int    // the number of blocks of the vector
	Scratch     int    // the number of blocks of Scratch; block i is as long as block i mod Blocks
	Commutative bool   // right only for operators that commute
	Uneven      bool   // right also where the ranks' parts differ in length
	EqualBlocks bool   // right only where all blocks are equally long

	// Make returns the program of a rank, which the caller must not change. It
	// may put the program together in the builder, which its callers reuse: the
	// program is then valid until the builder's next use. Time and memory should
	// be proportional to the program, whatever P is.
	Make func(b *Builder, rank int) Program

	lines map[int]*programLines // by rank, if a text was read
}

// Program returns the program of one rank, which is the caller's to keep. Those
// who need one program after another reuse one builder with Make instead.
func (s *Schedule) Program(rank int) Program {
	b := builders.Get().(*Builder)
	defer builders.Put(b)
	return s.Make(b, rank).clone()
}

// builders are those not in use. A builder that is used again has lists that are
// long enough already.
var builders = sync.Pool{New: func() any { return new(Builder) }}

// clone returns a copy of a program that shares nothing with it, in at most five
// slices, however many steps there are.
func (p Program) clone() Program {
	if p == nil {
		return nil
	}
	var copies, sends, recvs, to int
	for _, step := range p {
		copies, sends, recvs = copies+len(step.Copies), sends+len(step.Sends), recvs+len(step.Recvs)
		for _, send := range step.Sends {
			to += len(send.To)
		}
	}
	c := make(Program, len(p))
	allCopies, allSends, allRecvs, allTo := make([]Copy, copies), make([]Send, sends), make([]Recv, recvs), make([]int, to)
	for i, step := range p {
		c[i] = Step{part(&allCopies, step.Copies), part(&allSends, step.Sends), part(&allRecvs, step.Recvs)}
		for k := range c[i].Sends {
			send := &c[i].Sends[k]
			send.To = part(&allTo, send.To)
		}
	}
	return c
}

// part copies some elements to the beginning of a list, which it takes off the
// list. It returns nil for none, so that equal programs compare equal however
// they were made.
func part[T any](list *[]T, elements []T) []T {
	n := copy(*list, elements)
	taken := (*list)[:n:n]
	*list = (*list)[n:]
	if n == 0 {
		return nil
	}
	return taken
}
