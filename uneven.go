package chorale

import (
	"context"

	"github.com/chorale-go/chorale/sched"
)

// The collectives in which ranks' parts differ in length. Parts lie one after
// another, in the order of the ranks. All ranks give the lengths of all parts,
// which lets interior ranks of a tree hand on what is not theirs.

// ScatterV is [Scatter] with parts of different lengths: counts has one per
// rank. Dst has counts[Rank] elements.
func ScatterV[T any](ctx context.Context, c *Comm, dst, src []T, counts []int, root int, options ...Option) error {
	r := request[T]{callKey: callKey{collective: sched.Scatter, root: root}, counts: parts{counts, counts}, in: src, out: dst}
	whole, own, err := c.lengths(&r.callKey, counts)
	if c.rank != root {
		r.in = nil
	} else if err == nil && len(src) != whole {
		err = c.skip(r.collective, "src has %d elements: want %d, the sum of counts", len(src), whole)
	}
	if err == nil && len(dst) != own {
		err = c.skip(r.collective, "dst has %d elements: want %d, as counts says of rank %d", len(dst), own, c.rank)
	}
	if err != nil {
		return err
	}
	return do(ctx, c, &r, options)
}

// GatherV is [Gather] with parts of different lengths: counts has one per rank.
// Src has counts[Rank] elements.
func GatherV[T any](ctx context.Context, c *Comm, dst, src []T, counts []int, root int, options ...Option) error {
	r := request[T]{callKey: callKey{collective: sched.Gather, root: root}, counts: parts{counts, counts}, in: src, out: dst}
	whole, own, err := c.lengths(&r.callKey, counts)
	if c.rank != root {
		r.out = nil
	} else if err == nil && len(dst) != whole {
		err = c.skip(r.collective, "dst has %d elements: want %d, the sum of counts", len(dst), whole)
	}
	if err == nil && len(src) != own {
		err = c.skip(r.collective, "src has %d elements: want %d, as counts says of rank %d", len(src), own, c.rank)
	}
	if err != nil {
		return err
	}
	return do(ctx, c, &r, options)
}

// AllGatherV is [AllGather] with parts of different lengths: counts has one per
// rank. Src has counts[Rank] elements.
func AllGatherV[T any](ctx context.Context, c *Comm, dst, src []T, counts []int, options ...Option) error {
	r := request[T]{callKey: callKey{collective: sched.AllGather}, counts: parts{counts, counts}, in: src, out: dst}
	whole, own, err := c.lengths(&r.callKey, counts)
	switch {
	case err != nil:
		return err
	case len(dst) != whole:
		return c.skip(r.collective, "dst has %d elements: want %d, the sum of counts", len(dst), whole)
	case len(src) != own:
		return c.skip(r.collective, "src has %d elements: want %d, as counts says of rank %d", len(src), own, c.rank)
	}
	return do(ctx, c, &r, options)
}

// ReduceScatterV is [ReduceScatter] with parts of different lengths: counts has
// one per rank. Dst has counts[Rank] elements.
func ReduceScatterV[T any](ctx context.Context, c *Comm, dst, src []T, counts []int, op func() Op[T], options ...Option) error {
	return ReduceScatterVFunc(ctx, c, dst, src, counts, operation(op), options...)
}

// ReduceScatterVFunc is [ReduceScatterV] with an operation of the caller's own.
func ReduceScatterVFunc[T any](ctx context.Context, c *Comm, dst, src []T, counts []int, op Op[T], options ...Option) error {
	r := request[T]{callKey: callKey{collective: sched.ReduceScatter}, counts: parts{counts, counts}, in: src, out: dst, op: op}
	whole, own, err := c.lengths(&r.callKey, counts)
	switch {
	case err != nil:
		return err
	case len(src) != whole:
		return c.skip(r.collective, "src has %d elements: want %d, the sum of counts", len(src), whole)
	case len(dst) != own:
		return c.skip(r.collective, "dst has %d elements: want %d, as counts says of rank %d", len(dst), own, c.rank)
	}
	return do(ctx, c, &r, options)
}

// AllToAllV is [AllToAll] with parts of different lengths: part s of src, which
// is for rank s, has srcCounts[s] elements, and part s of dst, which is from
// rank s, has dstCounts[s]. What one rank has for another and what the other
// expects of it must be as long.
func AllToAllV[T any](ctx context.Context, c *Comm, dst, src []T, dstCounts, srcCounts []int, options ...Option) error {
	r := request[T]{callKey: callKey{collective: sched.AllToAll}, counts: parts{srcCounts, dstCounts}, in: src, out: dst}
	srcLen, _, err := c.lengths(&r.callKey, srcCounts)
	if err != nil {
		return err
	}
	first := r.uneven
	dstLen, _, err := c.lengths(&r.callKey, dstCounts)
	r.uneven = scramble(first ^ scramble(r.uneven))
	switch {
	case err != nil:
		return err
	case len(src) != srcLen:
		return c.skip(r.collective, "src has %d elements: want %d, the sum of srcCounts", len(src), srcLen)
	case len(dst) != dstLen:
		return c.skip(r.collective, "dst has %d elements: want %d, the sum of dstCounts", len(dst), dstLen)
	}
	return do(ctx, c, &r, options)
}

// lengths returns the sum of counts and the rank's own, and marks the key with
// their digest.
func (c *Comm) lengths(key *callKey, counts []int) (whole, own int, err error) {
	if len(counts) != c.size {
		return 0, 0, c.skip(key.collective, "%d counts: want %d, one per rank", len(counts), c.size)
	}
	key.uneven = 1
	for rank, n := range counts {
		if n < 0 {
			return 0, 0, c.skip(key.collective, "count %d of rank %d: want 0 or more", n, rank)
		}
		whole += n
		key.uneven = scramble(key.uneven + uint64(n))
	}
	return whole, counts[c.rank], nil
}

// scramble is a step of a digest (the finalizer of MurmurHash3). It never
// returns 0, which stands for no digest.
func scramble(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return (x ^ x>>33) | 1
}
