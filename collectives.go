package chorale

import (
	"context"

	"github.com/chorale-go/chorale/sched"
)

// Bcast copies buf of the root to buf of every other rank. All have the same
// length.
func Bcast[T any](ctx context.Context, c *Comm, buf []T, root int, options ...Option) error {
	in := buf
	if c.rank != root {
		in = nil
	}
	var r request[T]
	r.fill(sched.Bcast, root, len(buf), buf, in)
	return do(ctx, c, &r, options)
}

// Reduce combines the src of all ranks, element by element, into dst of the
// root. On the root dst is as long as src, and may be src; on other ranks it is
// not looked at and may be nil.
func Reduce[T any](ctx context.Context, c *Comm, dst, src []T, op func() Op[T], root int, options ...Option) error {
	return ReduceFunc(ctx, c, dst, src, operation(op), root, options...)
}

// ReduceFunc is [Reduce] with an operation of the caller's own.
func ReduceFunc[T any](ctx context.Context, c *Comm, dst, src []T, op Op[T], root int, options ...Option) error {
	if c.rank != root {
		dst = nil
	} else if err := c.alike(sched.Reduce, len(dst), len(src)); err != nil {
		return err
	}
	var r request[T]
	r.fill(sched.Reduce, root, len(src), dst, src)
	r.op = op
	return do(ctx, c, &r, options)
}

// AllReduce combines the src of all ranks, element by element, into dst of
// every rank. All have the same length; dst may be src. Every rank ends with
// the same bits.
func AllReduce[T any](ctx context.Context, c *Comm, dst, src []T, op func() Op[T], options ...Option) error {
	return AllReduceFunc(ctx, c, dst, src, operation(op), options...)
}

// AllReduceFunc is [AllReduce] with an operation of the caller's own.
func AllReduceFunc[T any](ctx context.Context, c *Comm, dst, src []T, op Op[T], options ...Option) error {
	if err := c.alike(sched.AllReduce, len(dst), len(src)); err != nil {
		return err
	}
	var r request[T]
	r.fill(sched.AllReduce, 0, len(src), dst, src)
	r.op = op
	return do(ctx, c, &r, options)
}

// Scatter gives part r of the root's src to dst of rank r. On the root src is
// Size times as long as dst, and dst may be the root's own part of it; on other
// ranks src is not looked at and may be nil.
func Scatter[T any](ctx context.Context, c *Comm, dst, src []T, root int, options ...Option) error {
	if c.rank != root {
		src = nil
	} else if err := c.parts(sched.Scatter, "src", len(src), "dst", len(dst)); err != nil {
		return err
	}
	var r request[T]
	r.fill(sched.Scatter, root, len(dst), dst, src)
	return do(ctx, c, &r, options)
}

// Gather puts src of rank r into part r of the root's dst. On the root dst is
// Size times as long as src, and src may be the root's own part of it; on other
// ranks dst is not looked at and may be nil.
func Gather[T any](ctx context.Context, c *Comm, dst, src []T, root int, options ...Option) error {
	if c.rank != root {
		dst = nil
	} else if err := c.parts(sched.Gather, "dst", len(dst), "src", len(src)); err != nil {
		return err
	}
	var r request[T]
	r.fill(sched.Gather, root, len(src), dst, src)
	return do(ctx, c, &r, options)
}

// AllGather puts src of rank r into part r of dst of every rank. Dst is Size
// times as long as src, and src may be the rank's own part of it.
func AllGather[T any](ctx context.Context, c *Comm, dst, src []T, options ...Option) error {
	if err := c.parts(sched.AllGather, "dst", len(dst), "src", len(src)); err != nil {
		return err
	}
	var r request[T]
	r.fill(sched.AllGather, 0, len(src), dst, src)
	return do(ctx, c, &r, options)
}

// ReduceScatter combines the src of all ranks, element by element, and gives
// part r of the result to dst of rank r. Src is Size times as long as dst, and
// dst may be the rank's own part of it.
func ReduceScatter[T any](ctx context.Context, c *Comm, dst, src []T, op func() Op[T], options ...Option) error {
	return ReduceScatterFunc(ctx, c, dst, src, operation(op), options...)
}

// ReduceScatterFunc is [ReduceScatter] with an operation of the caller's own.
func ReduceScatterFunc[T any](ctx context.Context, c *Comm, dst, src []T, op Op[T], options ...Option) error {
	if err := c.parts(sched.ReduceScatter, "src", len(src), "dst", len(dst)); err != nil {
		return err
	}
	var r request[T]
	r.fill(sched.ReduceScatter, 0, len(dst), dst, src)
	r.op = op
	return do(ctx, c, &r, options)
}

// AllToAll gives part s of rank r's src to part r of rank s's dst. Both have
// Size parts of the same length; dst may be src.
func AllToAll[T any](ctx context.Context, c *Comm, dst, src []T, options ...Option) error {
	if len(src)%c.size != 0 {
		return c.skip(sched.AllToAll, "src has %d elements: want a part as long for each of %d ranks", len(src), c.size)
	}
	if err := c.alike(sched.AllToAll, len(dst), len(src)); err != nil {
		return err
	}
	var r request[T]
	r.fill(sched.AllToAll, 0, len(src)/c.size, dst, src)
	return do(ctx, c, &r, options)
}

// Scan combines the src of ranks 0 to r, element by element, into dst of rank
// r: prefix sums. All have the same length; dst may be src.
func Scan[T any](ctx context.Context, c *Comm, dst, src []T, op func() Op[T], options ...Option) error {
	return ScanFunc(ctx, c, dst, src, operation(op), options...)
}

// ScanFunc is [Scan] with an operation of the caller's own.
func ScanFunc[T any](ctx context.Context, c *Comm, dst, src []T, op Op[T], options ...Option) error {
	if err := c.alike(sched.Scan, len(dst), len(src)); err != nil {
		return err
	}
	var r request[T]
	r.fill(sched.Scan, 0, len(src), dst, src)
	r.op = op
	return do(ctx, c, &r, options)
}

// ExScan combines the src of ranks 0 to r-1, element by element, into dst of
// rank r. Rank 0's dst is left as it is. All have the same length; dst may be
// src.
func ExScan[T any](ctx context.Context, c *Comm, dst, src []T, op func() Op[T], options ...Option) error {
	return ExScanFunc(ctx, c, dst, src, operation(op), options...)
}

// ExScanFunc is [ExScan] with an operation of the caller's own.
func ExScanFunc[T any](ctx context.Context, c *Comm, dst, src []T, op Op[T], options ...Option) error {
	if err := c.alike(sched.ExScan, len(dst), len(src)); err != nil {
		return err
	}
	var r request[T]
	r.fill(sched.ExScan, 0, len(src), dst, src)
	r.op = op
	return do(ctx, c, &r, options)
}

// Shift gives src of rank r to dst of rank r+by, counted modulo Size: a circular
// shift. By may be negative. All have the same length; dst may be src.
func Shift[T any](ctx context.Context, c *Comm, dst, src []T, by int, options ...Option) error {
	if err := c.alike(sched.Shift, len(dst), len(src)); err != nil {
		return err
	}
	var r request[T]
	r.fill(sched.Shift, ((by%c.size)+c.size)%c.size, len(src), dst, src)
	return do(ctx, c, &r, options)
}

// Barrier returns when all ranks have called it.
func Barrier(ctx context.Context, c *Comm, options ...Option) error {
	var r request[byte]
	r.collective = sched.Barrier
	return do(ctx, c, &r, options)
}

// alike reports an error unless dst is as long as src.
func (c *Comm) alike(what sched.Collective, dst, src int) error {
	if dst != src {
		return c.skip(what, "dst has %d elements: want %d, as many as src", dst, src)
	}
	return nil
}

// parts reports an error unless one buffer has a part per rank, each as long as
// the other buffer.
func (c *Comm) parts(what sched.Collective, whole string, wholeLen int, part string, partLen int) error {
	if wholeLen != c.size*partLen {
		return c.skip(what, "%s has %d elements: want %d, %d ranks times the %d of %s", whole, wholeLen, c.size*partLen, c.size, partLen, part)
	}
	return nil
}

// skip refuses a call. It counts all the same: see do.
func (c *Comm) skip(what sched.Collective, format string, args ...any) error {
	c.sequence++
	return c.wrong(what.String(), format, args...)
}
