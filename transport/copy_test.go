package transport_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/chorale-go/chorale/transport"
)

func TestACopyIsTheSameBytesHoweverItIsDone(t *testing.T) {
	for _, n := range []int{0, 1, 1<<20 - 1, 1 << 20, 1<<20 + 1, 1<<20 + 512<<10, 2<<20 - 1, 2 << 20, 5<<20 + 3} {
		src, dst := make([]byte, n), make([]byte, n)
		for i := range src {
			src[i] = byte(i * i >> 7)
		}
		for _, cached := range []bool{false, true} {
			clear(dst)
			if transport.Copy(dst, src, cached); !bytes.Equal(dst, src) {
				t.Errorf("cached %v: %d bytes differ", cached, n)
			}
		}
	}
}

// The two sides of the size from which on the built-in copy leaves the caches
// out; how much of a difference that makes depends on the processor.
func BenchmarkCopy(b *testing.B) {
	for _, n := range []int{1<<20 - 64, 1 << 20} {
		src, dst := make([]byte, n), make([]byte, n)
		for _, way := range []struct {
			name string
			copy func(dst, src []byte)
		}{
			{"Copy", func(dst, src []byte) { transport.Copy(dst, src, true) }},
			{"built-in", func(dst, src []byte) { copy(dst, src) }},
		} {
			b.Run(fmt.Sprintf("%s/%d", way.name, n), func(b *testing.B) {
				b.SetBytes(int64(n))
				for b.Loop() {
					way.copy(dst, src) // and back: it is read again at once
					way.copy(src, dst)
				}
			})
		}
	}
}
