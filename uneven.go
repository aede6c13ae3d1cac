package chorale

import (
	"context"

	"github.com/chorale-go/chorale/internal/exec"
	"github.com/chorale-go/chorale/sched"
)

// In the collectives of this file, parts differ in length. All ranks give the counts
// of all parts: an interior rank of a tree forwards parts that are not its own.

// ScatterV is [Scatter] with parts of different lengths. Counts has the number of
// elements of each rank's part, and is the same on all ranks. Src has as many
// elements as the sum of counts, and dst has counts[Rank].
func ScatterV[T any](ctx context.Context, c *Comm, dst, src []T, counts []int, root int, options ...Option) error {
	var a arguments[T]
	a.set(sched.Scatter, root, 0, dst, src)
	a.counts.in, a.counts.out = counts, counts
	whole, own, err := c.sumCounts(&a.callKey, counts)
	if c.Rank() != root {
		a.in = nil
	} else if err == nil && len(src) != whole {
		err = c.rejectCallf(a.collective.String(), "src has %d elements: want %d, the sum of counts", len(src), whole)
	}
	if err == nil && len(dst) != own {
		err = c.rejectCallf(a.collective.String(), "dst has %d elements: want %d, as counts says of rank %d", len(dst), own, c.rank)
	}
	if err != nil {
		return err
	}
	return do(ctx, c, &a, options)
}

// GatherV is [Gather] with parts of different lengths. Counts has the number of
// elements of each rank's part, and is the same on all ranks. Dst has as many
// elements as the sum of counts, and src has counts[Rank].
func GatherV[T any](ctx context.Context, c *Comm, dst, src []T, counts []int, root int, options ...Option) error {
	var a arguments[T]
	a.set(sched.Gather, root, 0, dst, src)
	a.counts.in, a.counts.out = counts, counts
	whole, own, err := c.sumCounts(&a.callKey, counts)
	if c.Rank() != root {
		a.out = nil
	} else if err == nil && len(dst) != whole {
		err = c.rejectCallf(a.collective.String(), "dst has %d elements: want %d, the sum of counts", len(dst), whole)
	}
	if err == nil && len(src) != own {
		err = c.rejectCallf(a.collective.String(), "src has %d elements: want %d, as counts says of rank %d", len(src), own, c.rank)
	}
	if err != nil {
		return err
	}
	return do(ctx, c, &a, options)
}

// AllGatherV is [AllGather] with parts of different lengths. Counts has the number
// of elements of each rank's part, and is the same on all ranks. Dst has as many
// elements as the sum of counts, and src has counts[Rank].
func AllGatherV[T any](ctx context.Context, c *Comm, dst, src []T, counts []int, options ...Option) error {
	var a arguments[T]
	a.set(sched.AllGather, 0, 0, dst, src)
	a.counts.in, a.counts.out = counts, counts
	whole, own, err := c.sumCounts(&a.callKey, counts)
	switch {
	case err != nil:
		return err
	case len(dst) != whole:
		return c.rejectCallf(a.collective.String(), "dst has %d elements: want %d, the sum of counts", len(dst), whole)
	case len(src) != own:
		return c.rejectCallf(a.collective.String(), "src has %d elements: want %d, as counts says of rank %d", len(src), own, c.rank)
	}
	return do(ctx, c, &a, options)
}

// ReduceScatterV is [ReduceScatter] with parts of different lengths. Counts has the
// number of elements of each rank's part, and is the same on all ranks. Src has as
// many elements as the sum of counts, and dst has counts[Rank].
func ReduceScatterV[T any](ctx context.Context, c *Comm, dst, src []T, counts []int, op func() Op[T], options ...Option) error {
	return ReduceScatterVFunc(ctx, c, dst, src, counts, operation(op), options...)
}

// ReduceScatterVFunc is [ReduceScatterV] with an operation of the caller's own.
func ReduceScatterVFunc[T any](ctx context.Context, c *Comm, dst, src []T, counts []int, op Op[T], options ...Option) error {
	var a arguments[T]
	a.set(sched.ReduceScatter, 0, 0, dst, src)
	a.counts.in, a.counts.out, a.op = counts, counts, op
	whole, own, err := c.sumCounts(&a.callKey, counts)
	switch {
	case err != nil:
		return err
	case len(src) != whole:
		return c.rejectCallf(a.collective.String(), "src has %d elements: want %d, the sum of counts", len(src), whole)
	case len(dst) != own:
		return c.rejectCallf(a.collective.String(), "dst has %d elements: want %d, as counts says of rank %d", len(dst), own, c.rank)
	}
	return do(ctx, c, &a, options)
}

// AllToAllV is [AllToAll] with parts of different lengths. Part s of src goes to
// rank s and has srcCounts[s] elements. Part s of dst comes from rank s and has
// dstCounts[s]. So srcCounts[s] of rank r equals dstCounts[r] of rank s. Dst and src
// must not overlap.
func AllToAllV[T any](ctx context.Context, c *Comm, dst, src []T, dstCounts, srcCounts []int, options ...Option) error {
	var a arguments[T]
	a.set(sched.AllToAll, 0, 0, dst, src)
	a.counts.in, a.counts.out = srcCounts, dstCounts
	srcLen, _, err := c.sumCounts(&a.callKey, srcCounts)
	if err != nil {
		return err
	}
	first := a.uneven
	dstLen, _, err := c.sumCounts(&a.callKey, dstCounts)
	a.uneven = mix64(first ^ mix64(a.uneven))
	switch {
	case err != nil:
		return err
	case len(src) != srcLen:
		return c.rejectCallf(a.collective.String(), "src has %d elements: want %d, the sum of srcCounts", len(src), srcLen)
	case len(dst) != dstLen:
		return c.rejectCallf(a.collective.String(), "dst has %d elements: want %d, the sum of dstCounts", len(dst), dstLen)
	case exec.Overlap(bytesOf(src), bytesOf(dst)):
		return c.rejectCallf(a.collective.String(), "dst and src overlap: want no memory in common")
	}
	return do(ctx, c, &a, options)
}

// sumCounts returns the sum of counts and the rank's own count, and sets the key's
// digest of them.
func (c *Comm) sumCounts(key *callKey, counts []int) (whole, own int, err error) {
	if c == nil || len(counts) != c.size {
		return 0, 0, c.rejectCallf(key.collective.String(), "%d counts: want %d, one per rank", len(counts), c.Size())
	}
	digest := uint64(1) // FNV-1a, word by word: one multiplication each
	for rank, n := range counts {
		if n < 0 {
			return 0, 0, c.rejectCallf(key.collective.String(), "count %d of rank %d: want 0 or more", n, rank)
		}
		whole += n
		digest = (digest ^ uint64(n)) * 1099511628211
	}
	key.uneven = mix64(digest)
	return whole, counts[c.rank], nil
}

// mix64 is one step of a digest: the finalizer of MurmurHash3. It never returns 0,
// which stands for no digest.
func mix64(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return (x ^ x>>33) | 1
}
