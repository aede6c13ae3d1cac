package shm

import (
	"fmt"
	"testing"

	"github.com/chorale-go/chorale/transport/internal/cluster"
)

// BenchmarkExchange has processes play patterns: see cluster.Rank. Beside it, the
// same machine's lines from core to core. Of each it reports the best rounds in a
// row as well, which tell more than the mean where the machine is busy.
func BenchmarkExchange(b *testing.B) {
	for _, n := range []int{2, 4, 8} {
		b.Run(fmt.Sprintf("processes=%d", n), func(b *testing.B) {
			job := processes(b, n)
			b.Run("line", func(b *testing.B) { measure(b, job, "line", 0) })
			for _, what := range []string{"swap", "direct", "bcast"} {
				for _, bytes := range []int{8, 1 << 10, 64 << 10, 1 << 20, 4 << 20} {
					b.Run(fmt.Sprintf("%s/%s", what, size(bytes)), func(b *testing.B) {
						b.SetBytes(int64(bytes))
						measure(b, job, what, bytes)
					})
				}
			}
		})
	}
}

func measure(b *testing.B, job *cluster.Cluster, what string, bytes int) {
	if what != "line" {
		job.RunAll(b, what, bytes, 3)
	}
	job.Best = 0
	b.ResetTimer()
	job.RunAll(b, what, bytes, b.N)
	if job.Best > 0 {
		b.ReportMetric(float64(job.Best), "best-ns/op")
	}
}

func size(bytes int) string {
	switch {
	case bytes >= 1<<20:
		return fmt.Sprintf("%dMiB", bytes>>20)
	case bytes >= 1<<10:
		return fmt.Sprintf("%dKiB", bytes>>10)
	}
	return fmt.Sprintf("%dB", bytes)
}

func BenchmarkAllocAndFree(b *testing.B) {
	ends, err := loopback(2, Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer ends[0].Close()
	defer ends[1].Close()
	for _, size := range []int{4 << 10, 1 << 20, 64 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				memory, _, err := ends[0].Alloc(size)
				if err != nil {
					b.Fatal(err)
				}
				memory[size-1] = 1
				if err := ends[0].Free(memory); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
