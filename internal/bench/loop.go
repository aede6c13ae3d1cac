package bench

import (
	"context"
	"slices"
	"time"

	"github.com/chorale-go/chorale"
)

const (
	batchTime   = 1000.0 // µs, that a batch of calls takes at least
	round       = 5      // samples between two looks at them
	mostSamples = 1000
	mostCalls   = 1 << 20 // in a batch
)

// A loop takes samples. It keeps the memory in which ranks agree on them.
type loop struct {
	mine, slowest [round + 1]float64
}

// run returns samples of what a call takes, in µs, and of how many calls each
// sample is the mean.
func (l *loop) run(ctx context.Context, c *chorale.Comm, limit time.Duration, call func(context.Context) error) (samples []float64, calls int, err error) {
	if calls, err = l.warmUp(ctx, c, limit, call); err != nil {
		return nil, 0, err
	}
	start := time.Now()
	for over := false; !over; {
		elapsed, err := l.round(ctx, c, start, calls, round, call)
		if err != nil {
			return nil, 0, err
		}
		for _, t := range l.slowest[:round] {
			samples = append(samples, t/float64(calls))
		}
		over = elapsed >= limit || len(samples) >= mostSamples || stable(samples)
	}
	return samples, calls, nil
}

// warmUp returns how many calls make a batch. A batch may be slow by accident,
// so that the fastest of three tells.
func (l *loop) warmUp(ctx context.Context, c *chorale.Comm, limit time.Duration, call func(context.Context) error) (calls int, err error) {
	start := time.Now()
	for calls = 1; ; {
		elapsed, err := l.round(ctx, c, start, calls, 3, call)
		switch {
		case err != nil:
			return 0, err
		case slices.Min(l.slowest[:3]) < batchTime && calls < mostCalls:
			calls *= 2
		case elapsed >= limit:
			return calls, nil
		}
	}
}

// round runs some batches, and leaves the time of each on the slowest rank, in
// µs, in l.slowest. It returns the time since start. All ranks get the same, so
// that they draw the same conclusions.
func (l *loop) round(ctx context.Context, c *chorale.Comm, start time.Time, calls, batches int, call func(context.Context) error) (elapsed time.Duration, err error) {
	for i := range batches {
		if l.mine[i], err = batch(ctx, c, calls, call); err != nil {
			return 0, err
		}
	}
	l.mine[round] = float64(time.Since(start))
	if err := chorale.AllReduce(ctx, c, l.slowest[:], l.mine[:], chorale.Max); err != nil {
		return 0, err
	}
	return time.Duration(l.slowest[round]), nil
}

// batch returns how long a number of calls takes on this rank, in µs.
func batch(ctx context.Context, c *chorale.Comm, calls int, call func(context.Context) error) (float64, error) {
	if err := chorale.Barrier(ctx, c); err != nil {
		return 0, err
	}
	begin := time.Now()
	for range calls {
		if err := call(ctx); err != nil {
			return 0, err
		}
	}
	return float64(time.Since(begin)) / float64(time.Microsecond), nil
}
