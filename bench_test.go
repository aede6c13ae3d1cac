package chorale_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/chorale-go/chorale"
)

// benchmark runs call b.N times on p ranks.
func benchmark(b *testing.B, p int, call func(ctx context.Context, c *chorale.Comm) error) {
	b.Helper()
	benchmarkBy(b, p, chorale.Run, call)
}

// benchmarkBy is benchmark by another function than Run.
func benchmarkBy(b *testing.B, p int, run func(ctx context.Context, n int, f chorale.Func) error, call func(ctx context.Context, c *chorale.Comm) error) {
	b.Helper()
	b.ReportAllocs()
	err := run(b.Context(), p, func(ctx context.Context, c *chorale.Comm) error {
		for range 10 { // the first calls compile what the others use
			if err := call(ctx, c); err != nil {
				return err
			}
		}
		if err := chorale.Barrier(ctx, c); err != nil {
			return err
		}
		if c.Rank() == 0 {
			b.ResetTimer()
		}
		for range b.N {
			if err := call(ctx, c); err != nil {
				return err
			}
		}
		if c.Rank() == 0 {
			b.StopTimer()
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

func BenchmarkAllReduce8Bytes(b *testing.B) {
	for _, p := range []int{2, 4, 8} {
		b.Run(fmt.Sprintf("p=%d", p), func(b *testing.B) {
			// A rank's numbers share no cache line with another's.
			src, dst := make([][16]float64, p), make([][16]float64, p)
			benchmark(b, p, func(ctx context.Context, c *chorale.Comm) error {
				return chorale.AllReduce(ctx, c, dst[c.Rank()][:1], src[c.Rank()][:1], chorale.Sum, chorale.WithAlgorithm("recursive-doubling"))
			})
		})
	}
}

// BenchmarkProfile shows what a profile adds to short calls, and what a timeline does.
// Compare the three of a kind over the same number of calls, as in -benchtime=100000x: of
// more calls, fewer are timed.
func BenchmarkProfile(b *testing.B) {
	const n = 128 // 1 KiB
	calls := map[string]func(ctx context.Context, c *chorale.Comm, dst, src []float64) error{
		"allreduce": func(ctx context.Context, c *chorale.Comm, dst, src []float64) error {
			return chorale.AllReduce(ctx, c, dst, src, chorale.Sum)
		},
		"pingpong": func(ctx context.Context, c *chorale.Comm, dst, src []float64) error {
			if c.Rank() == 0 {
				if err := chorale.Send(ctx, c, src, 1, 0); err != nil {
					return err
				}
			}
			if _, err := chorale.Recv(ctx, c, dst, 1-c.Rank(), 0); err != nil || c.Rank() == 0 {
				return err
			}
			return chorale.Send(ctx, c, src, 0, 0)
		},
		"start": func(ctx context.Context, c *chorale.Comm, dst, src []float64) error {
			return chorale.StartAllReduce(ctx, c, dst, src, chorale.Sum).Wait()
		},
	}
	profiled := func(ctx context.Context, n int, f chorale.Func) error {
		return chorale.RunProfile(ctx, n, f, new(chorale.Profile))
	}
	traced := func(ctx context.Context, n int, f chorale.Func) error {
		return chorale.RunTrace(ctx, n, f, new(chorale.Trace))
	}
	for _, name := range []string{"allreduce", "pingpong", "start"} {
		src, dst := [2][]float64{make([]float64, n), make([]float64, n)}, [2][]float64{make([]float64, n), make([]float64, n)}
		call := func(ctx context.Context, c *chorale.Comm) error {
			return calls[name](ctx, c, dst[c.Rank()], src[c.Rank()])
		}
		b.Run(name+"/off", func(b *testing.B) { benchmarkBy(b, 2, chorale.Run, call) })
		b.Run(name+"/on", func(b *testing.B) { benchmarkBy(b, 2, profiled, call) })
		b.Run(name+"/trace", func(b *testing.B) { benchmarkBy(b, 2, traced, call) })
	}
}

// BenchmarkCopy1MiB is the baseline of BenchmarkBcast1MiB.
func BenchmarkCopy1MiB(b *testing.B) {
	src, dst := make([]byte, 1<<20), make([]byte, 1<<20)
	b.SetBytes(1 << 20)
	for b.Loop() {
		copy(dst, src)
	}
}

func BenchmarkBcast1MiB(b *testing.B) {
	for _, p := range []int{2, 4, 8} {
		b.Run(fmt.Sprintf("p=%d", p), func(b *testing.B) {
			bufs := make([][]byte, p)
			for i := range bufs {
				bufs[i] = make([]byte, 1<<20)
			}
			b.SetBytes(1 << 20)
			benchmark(b, p, func(ctx context.Context, c *chorale.Comm) error {
				return chorale.Bcast(ctx, c, bufs[c.Rank()], 0)
			})
		})
	}
}

func BenchmarkAllReduce1MiB(b *testing.B) {
	for _, p := range []int{2, 4, 8} {
		b.Run(fmt.Sprintf("p=%d", p), func(b *testing.B) {
			bufs := make([][]float32, p)
			for i := range bufs {
				bufs[i] = make([]float32, 1<<18)
			}
			b.SetBytes(1 << 20)
			benchmark(b, p, func(ctx context.Context, c *chorale.Comm) error {
				return chorale.AllReduce(ctx, c, bufs[c.Rank()], bufs[c.Rank()], chorale.Sum)
			})
		})
	}
}

// BenchmarkAllReduceFunc1MiB is BenchmarkAllReduce1MiB with an operation of the
// caller's own, over elements and over slices.
func BenchmarkAllReduceFunc1MiB(b *testing.B) {
	for form, add := range map[string]chorale.Op[float32]{
		"elements": {Commutative: true, Combine: func(a, b float32) float32 { return a + b }},
		"slices": {Commutative: true, CombineSlice: func(dst, a, b []float32) {
			for i := range dst {
				dst[i] = a[i] + b[i]
			}
		}},
	} {
		for _, p := range []int{2, 4, 8} {
			b.Run(fmt.Sprintf("%s/p=%d", form, p), func(b *testing.B) {
				bufs := make([][]float32, p)
				for i := range bufs {
					bufs[i] = make([]float32, 1<<18)
				}
				b.SetBytes(1 << 20)
				benchmark(b, p, func(ctx context.Context, c *chorale.Comm) error {
					return chorale.AllReduceFunc(ctx, c, bufs[c.Rank()], bufs[c.Rank()], add)
				})
			})
		}
	}
}

// BenchmarkTenThousandRanks makes a job of 10,000 goroutines that does one
// allreduce and ends.
func BenchmarkTenThousandRanks(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if err := chorale.Run(b.Context(), 10000, sumOfRanks); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFreshRun makes a job of four ranks that does one allreduce and ends.
func BenchmarkFreshRun(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if err := chorale.Run(b.Context(), 4, reduceOnce); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOverlap computes while a nonblocking allreduce of 1 MiB is in progress.
// Compare it with the two done one after the other.
func BenchmarkOverlap(b *testing.B) {
	for _, nonblocking := range []bool{false, true} {
		b.Run(fmt.Sprintf("nonblocking=%v", nonblocking), func(b *testing.B) {
			const p = 2
			bufs, work := make([][]float32, p), make([][]float32, p)
			for i := range bufs {
				bufs[i], work[i] = make([]float32, 1<<18), make([]float32, 1<<14)
			}
			benchmark(b, p, func(ctx context.Context, c *chorale.Comm) error {
				reduce := func(ctx context.Context, c *chorale.Comm) error {
					return chorale.AllReduce(ctx, c, bufs[c.Rank()], bufs[c.Rank()], chorale.Sum)
				}
				if !nonblocking {
					compute(work[c.Rank()])
					return reduce(ctx, c)
				}
				r := chorale.Start(ctx, c, reduce)
				compute(work[c.Rank()])
				return r.Wait()
			})
		})
	}
}

func compute(v []float32) {
	for range 20 {
		for i := range v {
			v[i] = v[i]*0.5 + 1
		}
	}
}

// BenchmarkAlone is the cost of a call without messages.
func BenchmarkAlone(b *testing.B) {
	var src, dst [1]float64
	benchmark(b, 1, func(ctx context.Context, c *chorale.Comm) error {
		return chorale.AllReduce(ctx, c, dst[:], src[:], chorale.Sum)
	})
}
