package chorale

import "context"

// Every collective, started: the call returns at once, and its buffers are left
// alone until the request is done. See [Start].

// StartBarrier starts [Barrier].
func StartBarrier(ctx context.Context, c *Comm, options ...Option) *Request {
	return Start(ctx, c, func(ctx context.Context, c *Comm) error { return Barrier(ctx, c, options...) })
}

// StartBcast starts [Bcast].
func StartBcast[T any](ctx context.Context, c *Comm, buf []T, root int, options ...Option) *Request {
	return Start(ctx, c, func(ctx context.Context, c *Comm) error { return Bcast(ctx, c, buf, root, options...) })
}

// StartReduce starts [Reduce].
func StartReduce[T any](ctx context.Context, c *Comm, dst, src []T, op func() Op[T], root int, options ...Option) *Request {
	return Start(ctx, c, func(ctx context.Context, c *Comm) error { return Reduce(ctx, c, dst, src, op, root, options...) })
}

// StartReduceFunc starts [ReduceFunc].
func StartReduceFunc[T any](ctx context.Context, c *Comm, dst, src []T, op Op[T], root int, options ...Option) *Request {
	return Start(ctx, c, func(ctx context.Context, c *Comm) error { return ReduceFunc(ctx, c, dst, src, op, root, options...) })
}

// StartAllReduce starts [AllReduce].
func StartAllReduce[T any](ctx context.Context, c *Comm, dst, src []T, op func() Op[T], options ...Option) *Request {
	return Start(ctx, c, func(ctx context.Context, c *Comm) error { return AllReduce(ctx, c, dst, src, op, options...) })
}

// StartAllReduceFunc starts [AllReduceFunc].
func StartAllReduceFunc[T any](ctx context.Context, c *Comm, dst, src []T, op Op[T], options ...Option) *Request {
	return Start(ctx, c, func(ctx context.Context, c *Comm) error { return AllReduceFunc(ctx, c, dst, src, op, options...) })
}

// StartScatter starts [Scatter].
func StartScatter[T any](ctx context.Context, c *Comm, dst, src []T, root int, options ...Option) *Request {
	return Start(ctx, c, func(ctx context.Context, c *Comm) error { return Scatter(ctx, c, dst, src, root, options...) })
}

// StartScatterV starts [ScatterV].
func StartScatterV[T any](ctx context.Context, c *Comm, dst, src []T, counts []int, root int, options ...Option) *Request {
	return Start(ctx, c, func(ctx context.Context, c *Comm) error { return ScatterV(ctx, c, dst, src, counts, root, options...) })
}

// StartGather starts [Gather].
func StartGather[T any](ctx context.Context, c *Comm, dst, src []T, root int, options ...Option) *Request {
	return Start(ctx, c, func(ctx context.Context, c *Comm) error { return Gather(ctx, c, dst, src, root, options...) })
}

// StartGatherV starts [GatherV].
func StartGatherV[T any](ctx context.Context, c *Comm, dst, src []T, counts []int, root int, options ...Option) *Request {
	return Start(ctx, c, func(ctx context.Context, c *Comm) error { return GatherV(ctx, c, dst, src, counts, root, options...) })
}

// StartAllGather starts [AllGather].
func StartAllGather[T any](ctx context.Context, c *Comm, dst, src []T, options ...Option) *Request {
	return Start(ctx, c, func(ctx context.Context, c *Comm) error { return AllGather(ctx, c, dst, src, options...) })
}

// StartAllGatherV starts [AllGatherV].
func StartAllGatherV[T any](ctx context.Context, c *Comm, dst, src []T, counts []int, options ...Option) *Request {
	return Start(ctx, c, func(ctx context.Context, c *Comm) error { return AllGatherV(ctx, c, dst, src, counts, options...) })
}

// StartReduceScatter starts [ReduceScatter].
func StartReduceScatter[T any](ctx context.Context, c *Comm, dst, src []T, op func() Op[T], options ...Option) *Request {
	return Start(ctx, c, func(ctx context.Context, c *Comm) error { return ReduceScatter(ctx, c, dst, src, op, options...) })
}

// StartReduceScatterFunc starts [ReduceScatterFunc].
func StartReduceScatterFunc[T any](ctx context.Context, c *Comm, dst, src []T, op Op[T], options ...Option) *Request {
	return Start(ctx, c, func(ctx context.Context, c *Comm) error { return ReduceScatterFunc(ctx, c, dst, src, op, options...) })
}

// StartReduceScatterV starts [ReduceScatterV].
func StartReduceScatterV[T any](ctx context.Context, c *Comm, dst, src []T, counts []int, op func() Op[T], options ...Option) *Request {
	return Start(ctx, c, func(ctx context.Context, c *Comm) error {
		return ReduceScatterV(ctx, c, dst, src, counts, op, options...)
	})
}

// StartReduceScatterVFunc starts [ReduceScatterVFunc].
func StartReduceScatterVFunc[T any](ctx context.Context, c *Comm, dst, src []T, counts []int, op Op[T], options ...Option) *Request {
	return Start(ctx, c, func(ctx context.Context, c *Comm) error {
		return ReduceScatterVFunc(ctx, c, dst, src, counts, op, options...)
	})
}

// StartAllToAll starts [AllToAll].
func StartAllToAll[T any](ctx context.Context, c *Comm, dst, src []T, options ...Option) *Request {
	return Start(ctx, c, func(ctx context.Context, c *Comm) error { return AllToAll(ctx, c, dst, src, options...) })
}

// StartAllToAllV starts [AllToAllV].
func StartAllToAllV[T any](ctx context.Context, c *Comm, dst, src []T, dstCounts, srcCounts []int, options ...Option) *Request {
	return Start(ctx, c, func(ctx context.Context, c *Comm) error {
		return AllToAllV(ctx, c, dst, src, dstCounts, srcCounts, options...)
	})
}

// StartScan starts [Scan].
func StartScan[T any](ctx context.Context, c *Comm, dst, src []T, op func() Op[T], options ...Option) *Request {
	return Start(ctx, c, func(ctx context.Context, c *Comm) error { return Scan(ctx, c, dst, src, op, options...) })
}

// StartScanFunc starts [ScanFunc].
func StartScanFunc[T any](ctx context.Context, c *Comm, dst, src []T, op Op[T], options ...Option) *Request {
	return Start(ctx, c, func(ctx context.Context, c *Comm) error { return ScanFunc(ctx, c, dst, src, op, options...) })
}

// StartExScan starts [ExScan].
func StartExScan[T any](ctx context.Context, c *Comm, dst, src []T, op func() Op[T], options ...Option) *Request {
	return Start(ctx, c, func(ctx context.Context, c *Comm) error { return ExScan(ctx, c, dst, src, op, options...) })
}

// StartExScanFunc starts [ExScanFunc].
func StartExScanFunc[T any](ctx context.Context, c *Comm, dst, src []T, op Op[T], options ...Option) *Request {
	return Start(ctx, c, func(ctx context.Context, c *Comm) error { return ExScanFunc(ctx, c, dst, src, op, options...) })
}

// StartShift starts [Shift].
func StartShift[T any](ctx context.Context, c *Comm, dst, src []T, by int, options ...Option) *Request {
	return Start(ctx, c, func(ctx context.Context, c *Comm) error { return Shift(ctx, c, dst, src, by, options...) })
}
