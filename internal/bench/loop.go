package bench

import (
	"context"
	"slices"
	"time"

	"github.com/chorale-go/chorale"
)

const (
	batchTime     = 1000.0 // the least time of a batch of calls, in µs
	checkInterval = 5      // the number of samples between two checks of their median
	maxSamples    = 1000
	maxCalls      = 1 << 20 // in a batch
)

// A loop takes samples. It holds the buffers of the reduction in which the ranks
// agree on them.
type loop struct {
	mine, slowest [checkInterval + 1]float64
	switches      int64 // of this process, in batches
}

// A sampling is what a loop has measured of a call.
type sampling struct {
	samples  []float64 // of the time of a call on the slowest rank, in µs
	calls    int       // in the batch of each sample
	stable   bool      // the samples' median is
	switches int64     // context switches of this process in all batches
}

// iterations returns the number of calls.
func (s sampling) iterations() int { return s.calls * len(s.samples) }

// run measures a call.
func (l *loop) run(ctx context.Context, c *chorale.Comm, limit time.Duration, call func(context.Context) error) (s sampling, err error) {
	if s.calls, err = l.warmUp(ctx, c, limit, call); err != nil {
		return s, err
	}
	l.switches = 0
	start := time.Now()
	for over := false; !over; {
		elapsed, err := l.runBatches(ctx, c, start, s.calls, checkInterval, call)
		if err != nil {
			return s, err
		}
		for _, t := range l.slowest[:checkInterval] {
			s.samples = append(s.samples, t/float64(s.calls))
		}
		s.stable = stable(s.samples)
		over = elapsed >= limit || len(s.samples) >= maxSamples || s.stable
	}
	s.switches = l.switches
	return s, nil
}

// warmUp returns the number of calls in a batch. A single batch may be slow by
// accident, so the fastest of three decides.
func (l *loop) warmUp(ctx context.Context, c *chorale.Comm, limit time.Duration, call func(context.Context) error) (calls int, err error) {
	start := time.Now()
	for calls = 1; ; {
		elapsed, err := l.runBatches(ctx, c, start, calls, 3, call)
		switch {
		case err != nil:
			return 0, err
		case slices.Min(l.slowest[:3]) < batchTime && calls < maxCalls:
			calls *= 2
		case elapsed >= limit:
			return calls, nil
		}
	}
}

// runBatches runs checkInterval batches at most, and leaves the slowest rank's time
// of each, in µs, in l.slowest. It returns the time since start. All ranks get the
// same times, so that they take the same decisions.
func (l *loop) runBatches(ctx context.Context, c *chorale.Comm, start time.Time, calls, batches int, call func(context.Context) error) (elapsed time.Duration, err error) {
	for i := range batches {
		if l.mine[i], err = l.batch(ctx, c, calls, call); err != nil {
			return 0, err
		}
	}
	l.mine[checkInterval] = float64(time.Since(start))
	if err := chorale.AllReduce(ctx, c, l.slowest[:], l.mine[:], chorale.Max); err != nil {
		return 0, err
	}
	return time.Duration(l.slowest[checkInterval]), nil
}

// batch returns the time of a number of calls on this rank, in µs, and counts their
// context switches.
func (l *loop) batch(ctx context.Context, c *chorale.Comm, calls int, call func(context.Context) error) (float64, error) {
	if err := chorale.Barrier(ctx, c); err != nil {
		return 0, err
	}
	before, _ := contextSwitches()
	begin := time.Now()
	for range calls {
		if err := call(ctx); err != nil {
			return 0, err
		}
	}
	took := sinceMicroseconds(begin)
	after, _ := contextSwitches()
	l.switches += after - before
	return took, nil
}

// sinceMicroseconds returns the time since begin, in µs.
func sinceMicroseconds(begin time.Time) float64 {
	return float64(time.Since(begin)) / float64(time.Microsecond)
}
