package chorale

import "context"

// This file has every collective as a nonblocking call. The call returns at once,
// and its buffers belong to it until the request is done. See Start.

// StartBarrier is the nonblocking [Barrier]: see [Start].
func StartBarrier(ctx context.Context, c *Comm, options ...Option) *Request {
	return Start(ctx, c, func(ctx context.Context, c *Comm) error { return Barrier(ctx, c, options...) })
}

// StartBcast is the nonblocking [Bcast]: see [Start].
func StartBcast[T any](ctx context.Context, c *Comm, buf []T, root int, options ...Option) *Request {
	return Start(ctx, c, func(ctx context.Context, c *Comm) error { return Bcast(ctx, c, buf, root, options...) })
}

// StartReduce is the nonblocking [Reduce]: see [Start].
func StartReduce[T any](ctx context.Context, c *Comm, dst, src []T, op func() Op[T], root int, options ...Option) *Request {
	return Start(ctx, c, func(ctx context.Context, c *Comm) error { return Reduce(ctx, c, dst, src, op, root, options...) })
}

// StartReduceFunc is the nonblocking [ReduceFunc]: see [Start].
func StartReduceFunc[T any](ctx context.Context, c *Comm, dst, src []T, op Op[T], root int, options ...Option) *Request {
	return Start(ctx, c, func(ctx context.Context, c *Comm) error { return ReduceFunc(ctx, c, dst, src, op, root, options...) })
}

// StartAllReduce is the nonblocking [AllReduce]: see [Start].
func StartAllReduce[T any](ctx context.Context, c *Comm, dst, src []T, op func() Op[T], options ...Option) *Request {
	return Start(ctx, c, func(ctx context.Context, c *Comm) error { return AllReduce(ctx, c, dst, src, op, options...) })
}

// StartAllReduceFunc is the nonblocking [AllReduceFunc]: see [Start].
func StartAllReduceFunc[T any](ctx context.Context, c *Comm, dst, src []T, op Op[T], options ...Option) *Request {
	return Start(ctx, c, func(ctx context.Context, c *Comm) error { return AllReduceFunc(ctx, c, dst, src, op, options...) })
}

// StartScatter is the nonblocking [Scatter]: see [Start].
func StartScatter[T any](ctx context.Context, c *Comm, dst, src []T, root int, options ...Option) *Request {
	return Start(ctx, c, func(ctx context.Context, c *Comm) error { return Scatter(ctx, c, dst, src, root, options...) })
}

// StartScatterV is the nonblocking [ScatterV]: see [Start].
func StartScatterV[T any](ctx context.Context, c *Comm, dst, src []T, counts []int, root int, options ...Option) *Request {
	return Start(ctx, c, func(ctx context.Context, c *Comm) error { return ScatterV(ctx, c, dst, src, counts, root, options...) })
}

// StartGather is the nonblocking [Gather]: see [Start].
func StartGather[T any](ctx context.Context, c *Comm, dst, src []T, root int, options ...Option) *Request {
	return Start(ctx, c, func(ctx context.Context, c *Comm) error { return Gather(ctx, c, dst, src, root, options...) })
}

// StartGatherV is the nonblocking [GatherV]: see [Start].
func StartGatherV[T any](ctx context.Context, c *Comm, dst, src []T, counts []int, root int, options ...Option) *Request {
	return Start(ctx, c, func(ctx context.Context, c *Comm) error { return GatherV(ctx, c, dst, src, counts, root, options...) })
}

// StartAllGather is the nonblocking [AllGather]: see [Start].
func StartAllGather[T any](ctx context.Context, c *Comm, dst, src []T, options ...Option) *Request {
	return Start(ctx, c, func(ctx context.Context, c *Comm) error { return AllGather(ctx, c, dst, src, options...) })
}

// StartAllGatherV is the nonblocking [AllGatherV]: see [Start].
func StartAllGatherV[T any](ctx context.Context, c *Comm, dst, src []T, counts []int, options ...Option) *Request {
	return Start(ctx, c, func(ctx context.Context, c *Comm) error { return AllGatherV(ctx, c, dst, src, counts, options...) })
}

// StartReduceScatter is the nonblocking [ReduceScatter]: see [Start].
func StartReduceScatter[T any](ctx context.Context, c *Comm, dst, src []T, op func() Op[T], options ...Option) *Request {
	return Start(ctx, c, func(ctx context.Context, c *Comm) error { return ReduceScatter(ctx, c, dst, src, op, options...) })
}

// StartReduceScatterFunc is the nonblocking [ReduceScatterFunc]: see [Start].
func StartReduceScatterFunc[T any](ctx context.Context, c *Comm, dst, src []T, op Op[T], options ...Option) *Request {
	return Start(ctx, c, func(ctx context.Context, c *Comm) error { return ReduceScatterFunc(ctx, c, dst, src, op, options...) })
}

// StartReduceScatterV is the nonblocking [ReduceScatterV]: see [Start].
func StartReduceScatterV[T any](ctx context.Context, c *Comm, dst, src []T, counts []int, op func() Op[T], options ...Option) *Request {
	return Start(ctx, c, func(ctx context.Context, c *Comm) error {
		return ReduceScatterV(ctx, c, dst, src, counts, op, options...)
	})
}

// StartReduceScatterVFunc is the nonblocking [ReduceScatterVFunc]: see [Start].
func StartReduceScatterVFunc[T any](ctx context.Context, c *Comm, dst, src []T, counts []int, op Op[T], options ...Option) *Request {
	return Start(ctx, c, func(ctx context.Context, c *Comm) error {
		return ReduceScatterVFunc(ctx, c, dst, src, counts, op, options...)
	})
}

// StartAllToAll is the nonblocking [AllToAll]: see [Start].
func StartAllToAll[T any](ctx context.Context, c *Comm, dst, src []T, options ...Option) *Request {
	return Start(ctx, c, func(ctx context.Context, c *Comm) error { return AllToAll(ctx, c, dst, src, options...) })
}

// StartAllToAllV is the nonblocking [AllToAllV]: see [Start].
func StartAllToAllV[T any](ctx context.Context, c *Comm, dst, src []T, dstCounts, srcCounts []int, options ...Option) *Request {
	return Start(ctx, c, func(ctx context.Context, c *Comm) error {
		return AllToAllV(ctx, c, dst, src, dstCounts, srcCounts, options...)
	})
}

// StartScan is the nonblocking [Scan]: see [Start].
func StartScan[T any](ctx context.Context, c *Comm, dst, src []T, op func() Op[T], options ...Option) *Request {
	return Start(ctx, c, func(ctx context.Context, c *Comm) error { return Scan(ctx, c, dst, src, op, options...) })
}

// StartScanFunc is the nonblocking [ScanFunc]: see [Start].
func StartScanFunc[T any](ctx context.Context, c *Comm, dst, src []T, op Op[T], options ...Option) *Request {
	return Start(ctx, c, func(ctx context.Context, c *Comm) error { return ScanFunc(ctx, c, dst, src, op, options...) })
}

// StartExScan is the nonblocking [ExScan]: see [Start].
func StartExScan[T any](ctx context.Context, c *Comm, dst, src []T, op func() Op[T], options ...Option) *Request {
	return Start(ctx, c, func(ctx context.Context, c *Comm) error { return ExScan(ctx, c, dst, src, op, options...) })
}

// StartExScanFunc is the nonblocking [ExScanFunc]: see [Start].
func StartExScanFunc[T any](ctx context.Context, c *Comm, dst, src []T, op Op[T], options ...Option) *Request {
	return Start(ctx, c, func(ctx context.Context, c *Comm) error { return ExScanFunc(ctx, c, dst, src, op, options...) })
}

// StartShift is the nonblocking [Shift]: see [Start].
func StartShift[T any](ctx context.Context, c *Comm, dst, src []T, by int, options ...Option) *Request {
	return Start(ctx, c, func(ctx context.Context, c *Comm) error { return Shift(ctx, c, dst, src, by, options...) })
}
