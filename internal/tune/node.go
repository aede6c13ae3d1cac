package tune

import (
	"context"
	"math"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/chorale-go/chorale/internal/kernel"
	"github.com/chorale-go/chorale/internal/processors"
	"github.com/chorale-go/chorale/model"
)

// combinations are what is measured of combining: sums of each class of types, those of
// floating-point numbers first because they stand for others of their length, and what costs
// more than a sum. Unsigned integers and complex64 have the kernels of others.
var combinations = []struct {
	op       kernel.Op
	elements reflect.Type
}{
	{kernel.Sum, reflect.TypeFor[float32]()}, {kernel.Sum, reflect.TypeFor[float64]()},
	{kernel.Sum, reflect.TypeFor[int8]()}, {kernel.Sum, reflect.TypeFor[int16]()},
	{kernel.Sum, reflect.TypeFor[int32]()}, {kernel.Sum, reflect.TypeFor[int64]()},
	{kernel.Sum, reflect.TypeFor[complex128]()},
	{kernel.Max, reflect.TypeFor[float64]()}, {kernel.Prod, reflect.TypeFor[int64]()}, {kernel.Prod, reflect.TypeFor[complex128]()},
}

const (
	leastBytes = 1 << 10  // of a copy
	mostBytes  = 16 << 20 // beyond the caches of a processor
	batch      = 200 * time.Microsecond
)

// MeasureNode measures copies, combinations and the bandwidth of the memory, with a number
// of samples each: about 0.6 s for each sample. It returns what ends the context.
func MeasureNode(ctx context.Context, samples int) (model.Node, error) {
	n := model.Node{Processors: processors.Parallel()}
	buffers := [3][]byte{touched(mostBytes), touched(mostBytes), touched(mostBytes)}
	before := Observe()
	var spread []float64
	measure := func(call func(bytes int)) (model.Curve, error) {
		points, spreads, err := sweep(ctx, samples, call)
		spread = append(spread, spreads...)
		return Fit(points), err
	}
	var err error
	if n.Copy, err = measure(func(bytes int) { copy(buffers[0][:bytes], buffers[1][:bytes]) }); err != nil {
		return n, err
	}
	for _, c := range combinations {
		combine := kernel.For(c.op, c.elements.Kind())
		curve, err := measure(func(bytes int) { combine(buffers[0][:bytes], buffers[1][:bytes], buffers[2][:bytes]) })
		if err != nil {
			return n, err
		}
		n.Combine = append(n.Combine, model.Combining{Op: c.op.String(), Type: c.elements.String(), Bytes: int(c.elements.Size()), Curve: curve})
	}
	n.MemoryFrom = n.Copy[len(n.Copy)-1].From
	for movers := 1; ; movers = min(2*movers, n.Processors) {
		rates := make([]float64, 0, samples)
		for range samples {
			if ctx.Err() != nil {
				return n, context.Cause(ctx)
			}
			rates = append(rates, bandwidth(movers))
		}
		n.Memory = append(n.Memory, model.Bandwidth{Movers: movers, Rate: estimate(rates)})
		if movers == n.Processors {
			break
		}
	}
	n.Origin = before.Origin(spread, n.Processors)
	return n, nil
}

// touched returns memory that has been written to.
func touched(bytes int) []byte {
	b := make([]byte, bytes)
	for i := 0; i < bytes; i += 512 {
		b[i] = 1
	}
	return b
}

// sweep times a call of each size, a number of times, and returns how far the times of a
// size are apart.
func sweep(ctx context.Context, samples int, call func(bytes int)) (points []Point, spreads []float64, err error) {
	for bytes := leastBytes; bytes <= mostBytes; bytes *= 2 {
		if ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
		times := make([]float64, samples)
		for i := range times {
			times[i] = timeOf(func() { call(bytes) })
			points = append(points, Point{float64(bytes), times[i]})
		}
		spreads = append(spreads, spreadOf(times))
	}
	return points, spreads, nil
}

// timeOf returns the time of a call in µs: the least of three batches, because what
// disturbs a batch only makes it longer.
func timeOf(call func()) float64 {
	least := math.Inf(1)
	for calls, batches := 1, 0; batches < 3; {
		begin := time.Now()
		for range calls {
			call()
		}
		took := time.Since(begin)
		if took < batch {
			calls *= 2
			continue
		}
		batches++
		least = min(least, float64(took)/float64(time.Microsecond)/float64(calls))
	}
	return least
}

// bandwidth returns the bytes per µs that some goroutines copy together, each between
// buffers of its own that are larger than a processor's caches.
func bandwidth(movers int) float64 {
	const rounds = 4
	var ready, done sync.WaitGroup
	ready.Add(movers)
	begin := make(chan struct{})
	times := make([]float64, movers)
	for i := range movers {
		done.Go(func() {
			from, to := touched(mostBytes), touched(mostBytes)
			ready.Done()
			<-begin
			start := time.Now()
			for range rounds {
				copy(to, from)
			}
			times[i] = float64(time.Since(start)) / float64(time.Microsecond)
		})
	}
	ready.Wait()
	close(begin)
	done.Wait()
	return float64(movers) * rounds * mostBytes / slices.Max(times)
}

// spreadOf returns how far times that should be equal are apart, relative to their median.
func spreadOf(times []float64) float64 {
	return (slices.Max(times) - slices.Min(times)) / median(times)
}
