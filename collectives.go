package chorale

import (
	"context"

	"github.com/chorale-go/chorale/sched"
)

// Bcast copies buf of the root to buf of every other rank. All have the same
// length. The root may return before other ranks have received.
func Bcast[T any](ctx context.Context, c *Comm, buf []T, root int, options ...Option) error {
	in := buf
	if c.Rank() != root {
		in = nil
	}
	var a arguments[T]
	a.set(sched.Bcast, root, len(buf), buf, in)
	return do(ctx, c, &a, options)
}

// Reduce combines the src of all ranks, element by element, into dst of the root.
// All src have the same length. On the root dst is as long as src, and may be src;
// on other ranks dst is ignored and may be nil. Other ranks may return before the
// root has the result.
func Reduce[T any](ctx context.Context, c *Comm, dst, src []T, op func() Op[T], root int, options ...Option) error {
	return ReduceFunc(ctx, c, dst, src, operation(op), root, options...)
}

// ReduceFunc is [Reduce] with an operation of the caller's own.
func ReduceFunc[T any](ctx context.Context, c *Comm, dst, src []T, op Op[T], root int, options ...Option) error {
	if c.Rank() != root {
		dst = nil
	} else if err := c.checkSameLength(sched.Reduce, len(dst), len(src)); err != nil {
		return err
	}
	var a arguments[T]
	a.set(sched.Reduce, root, len(src), dst, src)
	a.op = op
	return do(ctx, c, &a, options)
}

// AllReduce combines the src of all ranks, element by element, into dst of every
// rank. All have the same length; dst may be src. Every rank ends with the same
// bits.
func AllReduce[T any](ctx context.Context, c *Comm, dst, src []T, op func() Op[T], options ...Option) error {
	return AllReduceFunc(ctx, c, dst, src, operation(op), options...)
}

// AllReduceFunc is [AllReduce] with an operation of the caller's own.
func AllReduceFunc[T any](ctx context.Context, c *Comm, dst, src []T, op Op[T], options ...Option) error {
	if err := c.checkSameLength(sched.AllReduce, len(dst), len(src)); err != nil {
		return err
	}
	var a arguments[T]
	a.set(sched.AllReduce, 0, len(src), dst, src)
	a.op = op
	return do(ctx, c, &a, options)
}

// Scatter copies part r of the root's src to dst of rank r. All dst have the same
// length. On the root src is Size times as long as dst, and dst may be the root's
// own part of it; on other ranks src is ignored and may be nil. The root may return
// before other ranks have received.
func Scatter[T any](ctx context.Context, c *Comm, dst, src []T, root int, options ...Option) error {
	if c.Rank() != root {
		src = nil
	} else if err := c.checkParts(sched.Scatter, "src", len(src), "dst", len(dst)); err != nil {
		return err
	}
	var a arguments[T]
	a.set(sched.Scatter, root, len(dst), dst, src)
	return do(ctx, c, &a, options)
}

// Gather copies src of rank r to part r of the root's dst. All src have the same
// length. On the root dst is Size times as long as src, and src may be the root's
// own part of it; on other ranks dst is ignored and may be nil. Other ranks may
// return before the root has received.
func Gather[T any](ctx context.Context, c *Comm, dst, src []T, root int, options ...Option) error {
	if c.Rank() != root {
		dst = nil
	} else if err := c.checkParts(sched.Gather, "dst", len(dst), "src", len(src)); err != nil {
		return err
	}
	var a arguments[T]
	a.set(sched.Gather, root, len(src), dst, src)
	return do(ctx, c, &a, options)
}

// AllGather copies src of rank r to part r of dst of every rank. All src have the
// same length. Dst is Size times as long as src, and src may be the rank's own part
// of it.
func AllGather[T any](ctx context.Context, c *Comm, dst, src []T, options ...Option) error {
	if err := c.checkParts(sched.AllGather, "dst", len(dst), "src", len(src)); err != nil {
		return err
	}
	var a arguments[T]
	a.set(sched.AllGather, 0, len(src), dst, src)
	return do(ctx, c, &a, options)
}

// ReduceScatter combines the src of all ranks, element by element, and leaves part
// r of the result in dst of rank r. All dst have the same length. Src is Size times
// as long as dst, and dst may be the rank's own part of it.
func ReduceScatter[T any](ctx context.Context, c *Comm, dst, src []T, op func() Op[T], options ...Option) error {
	return ReduceScatterFunc(ctx, c, dst, src, operation(op), options...)
}

// ReduceScatterFunc is [ReduceScatter] with an operation of the caller's own.
func ReduceScatterFunc[T any](ctx context.Context, c *Comm, dst, src []T, op Op[T], options ...Option) error {
	if err := c.checkParts(sched.ReduceScatter, "src", len(src), "dst", len(dst)); err != nil {
		return err
	}
	var a arguments[T]
	a.set(sched.ReduceScatter, 0, len(dst), dst, src)
	a.op = op
	return do(ctx, c, &a, options)
}

// AllToAll copies part s of rank r's src to part r of rank s's dst. Both have Size
// parts of the same length, on all ranks; dst may be src.
func AllToAll[T any](ctx context.Context, c *Comm, dst, src []T, options ...Option) error {
	size := max(1, c.Size())
	if len(src)%size != 0 {
		return c.rejectCallf(sched.AllToAll.String(), "src has %d elements: want a part as long for each of %d ranks", len(src), size)
	}
	if err := c.checkSameLength(sched.AllToAll, len(dst), len(src)); err != nil {
		return err
	}
	var a arguments[T]
	a.set(sched.AllToAll, 0, len(src)/size, dst, src)
	return do(ctx, c, &a, options)
}

// Scan combines the src of ranks 0 to r, element by element, into dst of rank r:
// inclusive prefix sums. All have the same length; dst may be src.
func Scan[T any](ctx context.Context, c *Comm, dst, src []T, op func() Op[T], options ...Option) error {
	return ScanFunc(ctx, c, dst, src, operation(op), options...)
}

// ScanFunc is [Scan] with an operation of the caller's own.
func ScanFunc[T any](ctx context.Context, c *Comm, dst, src []T, op Op[T], options ...Option) error {
	if err := c.checkSameLength(sched.Scan, len(dst), len(src)); err != nil {
		return err
	}
	var a arguments[T]
	a.set(sched.Scan, 0, len(src), dst, src)
	a.op = op
	return do(ctx, c, &a, options)
}

// ExScan combines the src of ranks 0 to r−1, element by element, into dst of rank
// r: exclusive prefix sums. Rank 0's dst is left as it is. All have the same length;
// dst may be src.
func ExScan[T any](ctx context.Context, c *Comm, dst, src []T, op func() Op[T], options ...Option) error {
	return ExScanFunc(ctx, c, dst, src, operation(op), options...)
}

// ExScanFunc is [ExScan] with an operation of the caller's own.
func ExScanFunc[T any](ctx context.Context, c *Comm, dst, src []T, op Op[T], options ...Option) error {
	if err := c.checkSameLength(sched.ExScan, len(dst), len(src)); err != nil {
		return err
	}
	var a arguments[T]
	a.set(sched.ExScan, 0, len(src), dst, src)
	a.op = op
	return do(ctx, c, &a, options)
}

// Shift copies src of rank r to dst of rank r+by, modulo Size: a circular shift. By
// may be negative, and is the same on all ranks. All have the same length; dst may
// be src.
func Shift[T any](ctx context.Context, c *Comm, dst, src []T, by int, options ...Option) error {
	if err := c.checkSameLength(sched.Shift, len(dst), len(src)); err != nil {
		return err
	}
	var a arguments[T]
	size := max(1, c.Size())
	a.set(sched.Shift, (by%size+size)%size, len(src), dst, src)
	return do(ctx, c, &a, options)
}

// Barrier returns when all ranks have called it.
func Barrier(ctx context.Context, c *Comm, options ...Option) error {
	var a arguments[byte]
	a.collective = sched.Barrier
	return do(ctx, c, &a, options)
}

// checkSameLength rejects the call unless dst is as long as src.
func (c *Comm) checkSameLength(collective sched.Collective, dst, src int) error {
	if dst != src {
		return c.rejectCallf(collective.String(), "dst has %d elements: want %d, as many as src", dst, src)
	}
	return nil
}

// checkParts rejects the call unless one buffer has a part per rank, each as long
// as the other buffer.
func (c *Comm) checkParts(collective sched.Collective, whole string, wholeLen int, part string, partLen int) error {
	if wholeLen != c.Size()*partLen {
		return c.rejectCallf(collective.String(), "%s has %d elements: want %d, %d ranks times the %d of %s", whole, wholeLen, c.Size()*partLen, c.Size(), partLen, part)
	}
	return nil
}
