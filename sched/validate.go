package sched

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxRanks and maxBlocks bound the numbers of a schedule that was read from a
// file by what 32-bit fields hold.
const (
	maxRanks  = 1 << 24
	maxBlocks = 1 << 30
)

// validate checks the schedule's own numbers.
func (s *Schedule) validate() error {
	switch {
	case int(s.Collective) >= len(collectives):
		return faultf(-1, -1, -1, -1, "%v is not a collective", s.Collective)
	case s.P < 1 || s.P > maxRanks:
		return faultf(-1, -1, -1, -1, "%d ranks: want 1 to %d", s.P, maxRanks)
	case s.Root < 0 || s.Root >= s.P:
		return faultf(-1, -1, -1, -1, "root %d: want 0 to %d", s.Root, s.P-1)
	case s.Blocks < 0 || s.Blocks > maxBlocks || s.Scratch < 0 || s.Scratch > maxBlocks:
		return faultf(-1, -1, -1, -1, "%d blocks, %d of scratch: want 0 to %d", s.Blocks, s.Scratch, maxBlocks)
	case s.Collective != Barrier && s.Blocks == 0:
		return faultf(-1, -1, -1, -1, "%v without blocks: want at least 1", s.Collective)
	case s.Partitioned() && s.Blocks%s.P != 0:
		return faultf(-1, -1, -1, -1, "%d blocks are not as many for each of %d ranks", s.Blocks, s.P)
	case s.Uneven && !s.Partitioned():
		return faultf(-1, -1, -1, -1, "%v has no parts that could be uneven", s.Collective)
	case s.Uneven && s.EqualBlocks:
		return faultf(-1, -1, -1, -1, "uneven parts, and blocks that are equally long")
	case s.Make == nil:
		return faultf(-1, -1, -1, -1, "no programs")
	}
	return nil
}

// validateRead checks the numbers of a schedule that was read from a file, and that
// both forms can have its name.
func (s *Schedule) validateRead() error {
	name := s.Algorithm
	if !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return r == '#' || unicode.IsSpace(r) }) {
		return faultf(-1, -1, -1, -1, "algorithm %q: want a name of one word", name)
	}
	return s.validate()
}

// Partitioned reports whether the vector is one part per rank, as in scatter
// and allgather. Only the collective decides it.
func (s *Schedule) Partitioned() bool {
	switch s.Collective {
	case Scatter, Gather, AllGather, ReduceScatter, AllToAll:
		return true
	}
	return false
}

// sameLengths returns an error if n blocks from lo, on their way from one rank
// to another or within a rank, can differ in length from the blocks at at.
// Blocks of a vector can: only equal block numbers guarantee equal lengths. If
// the schedule is not Uneven, all parts are equally long, so equal numbers
// within the part suffice. If it has EqualBlocks, all blocks are equally long.
func (s *Schedule) sameLengths(from, to int, src Buffer, lo, n int, dst Buffer, at int) error {
	period := s.Blocks
	switch {
	case n <= 0 || period == 0 || s.EqualBlocks:
		return nil
	case s.Uneven && s.Collective == AllToAll:
		return s.direct(from, to, src, Range{lo, lo + n}, dst, at)
	case s.Partitioned() && !s.Uneven:
		period /= s.P
	}
	if (lo-at)%period == 0 {
		return nil
	}
	return fmt.Errorf("block %d lands where block %d belongs, and they may differ in length", lo, at)
}

// direct returns an error unless blocks go straight from the sender's part for
// the receiver to the receiver's part from the sender: no third rank knows the
// length of what two ranks have for each other.
func (s *Schedule) direct(from, to int, src Buffer, blocks Range, dst Buffer, at int) error {
	if src == In && dst == Out && s.Part(to).Contains(blocks) && at-s.Part(from).Lo == blocks.Lo-s.Part(to).Lo {
		return nil
	}
	return fmt.Errorf("%v %v lands in %v %d, and in an uneven alltoall nothing goes by a way round", src, blocks, dst, at)
}

// checkStep checks one step of one rank by itself.
func (s *Schedule) checkStep(rank, i int, step Step) *Fault {
	for k, c := range step.Copies {
		err := s.within(rank, c.Src, c.Blocks)
		if err == nil {
			err = s.writable(rank, c.Dst, c.Into())
		}
		if err == nil && c.Src == c.Dst && c.Blocks.Overlaps(c.Into()) {
			err = fmt.Errorf("a copy overlaps itself")
		}
		if err == nil {
			err = s.combines(c.How)
		}
		if err == nil {
			err = s.sameLengths(rank, rank, c.Src, c.Blocks.Lo, c.Blocks.Len(), c.Dst, c.At)
		}
		if err != nil {
			return faultf(rank, i, -1, c.Blocks.Lo, "copy: %v", err).by(copyOp, k)
		}
	}
	for n, send := range step.Sends {
		if len(send.To) == 0 {
			return faultf(rank, i, -1, send.Blocks.Lo, "sends to no rank").by(sendOp, n)
		}
		for k, to := range send.To {
			err := s.peer(rank, to)
			for _, earlier := range send.To[:k] {
				if earlier == to {
					err = fmt.Errorf("a multicast names rank %d twice", to)
				}
			}
			if err == nil {
				err = s.within(rank, send.Src, send.Blocks)
			}
			if err != nil {
				return faultf(rank, i, to, send.Blocks.Lo, "send: %v", err).by(sendOp, n)
			}
		}
	}
	for k, r := range step.Recvs {
		if err := s.checkRecv(rank, r, step.Sends); err != nil {
			return faultf(rank, i, r.From, r.Blocks.Lo, "receive: %v", err).by(recvOp, k)
		}
	}
	return nil
}

func (s *Schedule) checkRecv(rank int, r Recv, sends []Send) error {
	if err := s.peer(rank, r.From); err != nil {
		return err
	}
	if err := s.writable(rank, r.Dst, r.Blocks); err != nil {
		return err
	}
	if err := s.combines(r.How); err != nil {
		return err
	}
	for _, send := range sends {
		if send.Src == r.Dst && send.Blocks.Overlaps(r.Blocks) {
			return fmt.Errorf("writes %v %v, which the step also sends", r.Dst, r.Blocks)
		}
	}
	return nil
}

func (s *Schedule) peer(rank, peer int) error {
	switch {
	case peer < 0 || peer >= s.P:
		return fmt.Errorf("no rank %d: want 0 to %d", peer, s.P-1)
	case peer == rank:
		return fmt.Errorf("a message to itself")
	}
	return nil
}

// within returns an error unless the rank has those blocks of the buffer.
func (s *Schedule) within(rank int, b Buffer, r Range) error {
	if b > Scratch {
		return fmt.Errorf("no buffer %v", b)
	}
	extent := s.Extent(b, rank)
	if r.Lo < 0 || r.Hi < r.Lo || r.Hi > maxBlocks || !extent.Contains(r) {
		return fmt.Errorf("%v %v: rank %d has %v %v", b, r, rank, b, extent)
	}
	return nil
}

func (s *Schedule) writable(rank int, b Buffer, r Range) error {
	if b == In {
		return fmt.Errorf("writes in, which is only to be read")
	}
	return s.within(rank, b, r)
}

func (s *Schedule) combines(how Combine) error {
	if how > Right {
		return fmt.Errorf("no way to combine %v", how)
	}
	if how != Replace && !s.Collective.Combines() {
		return fmt.Errorf("combines, but %v takes no operator", s.Collective)
	}
	return nil
}
