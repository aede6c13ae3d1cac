package kernel

import (
	"fmt"
	"reflect"
	"testing"
	"time"
)

var benchSizes = []struct {
	name  string
	bytes int
}{
	{"8B", 8}, {"64B", 64}, {"1KiB", 1 << 10}, {"4KiB", 4 << 10}, {"16KiB", 16 << 10}, {"64KiB", 64 << 10},
	{"256KiB", 256 << 10}, {"1MiB", 1 << 20}, {"4MiB", 4 << 20},
}

// bench combines in place, and reports bytes of the destination. of-copy is the
// speed relative to copying as many bytes, measured right afterwards.
func bench(b *testing.B, f Func, bytes int) {
	dst, src := make([]byte, bytes), make([]byte, bytes)
	b.SetBytes(int64(bytes))
	for b.Loop() {
		f(dst, dst, src)
	}
	combining, start := b.Elapsed(), time.Now()
	for range b.N {
		copy(dst, src)
	}
	b.ReportMetric(float64(time.Since(start))/float64(combining), "of-copy")
}

func benchKinds(b *testing.B, op Op, kinds ...reflect.Kind) {
	for _, kind := range kinds {
		for _, s := range benchSizes {
			b.Run(kind.String()+"/"+s.name, func(b *testing.B) { bench(b, For(op, kind), s.bytes) })
		}
	}
}

func BenchmarkSum(b *testing.B) {
	benchKinds(b, Sum, reflect.Float32, reflect.Float64, reflect.Int64, reflect.Int8)
}

func BenchmarkMax(b *testing.B) { benchKinds(b, Max, reflect.Float32, reflect.Int64, reflect.Uint8) }

// BenchmarkPaths is of vectors in the first cache, where instructions count.
func BenchmarkPaths(b *testing.B) {
	for op := Sum; op <= Xor; op++ {
		for kind := reflect.Int8; kind <= reflect.Complex128; kind++ {
			for _, p := range paths(op, kind) {
				b.Run(fmt.Sprintf("%v/%v/%v", op, kind, p), func(b *testing.B) { bench(b, find(p, op, kind), 4<<10) })
			}
		}
	}
}
