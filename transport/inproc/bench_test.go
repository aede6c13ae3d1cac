package inproc

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"sync"
	"testing"

	"github.com/chorale-go/chorale/transport"
)

// together runs f on every rank of a job at once, b.N times each.
func together(b *testing.B, n int, f func(ctx context.Context, e *Endpoint) func(i int) error) {
	j := New(n)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var ready, ranks sync.WaitGroup
	begin := make(chan struct{})
	ready.Add(n)
	for rank := range n {
		ranks.Go(func() {
			e := j.Endpoint(rank)
			defer e.Close()
			step := f(ctx, e)
			err := step(0)
			ready.Done()
			<-begin
			for i := 1; i <= b.N && err == nil; i++ {
				err = step(i)
			}
			if err != nil {
				b.Error(err)
			}
		})
	}
	ready.Wait()
	b.ReportAllocs()
	b.ResetTimer()
	close(begin)
	ranks.Wait()
}

func addFloat64(into, held, incoming []byte) {
	for i := 0; i+8 <= len(into); i += 8 {
		a := math.Float64frombits(binary.LittleEndian.Uint64(held[i:]))
		b := math.Float64frombits(binary.LittleEndian.Uint64(incoming[i:]))
		binary.LittleEndian.PutUint64(into[i:], math.Float64bits(a+b))
	}
}

// doubling returns a rank's allreduce by recursive doubling over its endpoint, for
// powers of two. Each step combines from one of two buffers into the other.
func doubling(ctx context.Context, e *Endpoint, size int, op func(into, held, incoming []byte)) func(i int) error {
	held, into := make([]byte, size), make([]byte, size)
	to := make([]int, 1)
	sends, recvs := make([]transport.Send, 1), make([]transport.Recv, 1)
	return func(i int) error {
		for d := 1; d < e.Size(); d *= 2 {
			to[0] = e.Rank() ^ d
			sends[0] = transport.Send{To: to, Data: held}
			recvs[0] = transport.Recv{From: to[0], Into: into, Held: held, Combine: op, Elem: 8}
			err := e.Exchange(ctx, transport.Step{
				Signature: transport.Signature{Context: 1, Sequence: uint32(i), Call: "allreduce sum float64 count=1 algorithm=recursive-doubling"},
				Sends:     sends, Recvs: recvs,
			})
			if err != nil {
				return err
			}
			held, into = into, held
		}
		return nil
	}
}

func BenchmarkAllReduceByRecursiveDoubling(b *testing.B) {
	for _, size := range []int{8, 64, 1024, 8192, 1 << 20} {
		for _, n := range []int{2, 4, 8, 64} {
			b.Run(fmt.Sprintf("bytes=%d/p=%d", size, n), func(b *testing.B) {
				together(b, n, func(ctx context.Context, e *Endpoint) func(int) error { return doubling(ctx, e, size, addFloat64) })
			})
		}
	}
}

// BenchmarkManyRanks is a barrier of 10,000 goroutines, in 14 steps.
func BenchmarkManyRanks(b *testing.B) {
	together(b, manyRanks, func(ctx context.Context, e *Endpoint) func(int) error {
		return func(i int) error { return dissemination(ctx, e, i) }
	})
}

// BenchmarkAllReduceDirect has every rank send to every other in one step.
func BenchmarkAllReduceDirect(b *testing.B) {
	for _, n := range []int{2, 4, 8} {
		b.Run(fmt.Sprintf("bytes=8/p=%d", n), func(b *testing.B) {
			together(b, n, func(ctx context.Context, e *Endpoint) func(int) error {
				mine, sum := make([]byte, 8), make([]byte, 8)
				send := transport.Send{Data: mine}
				var recvs []transport.Recv
				for peer := range n {
					if peer != e.Rank() {
						send.To = append(send.To, peer)
						recvs = append(recvs, transport.Recv{From: peer, Into: sum, Held: sum, Combine: addFloat64, Elem: 8, Ordered: true})
					}
				}
				sends := []transport.Send{send}
				return func(i int) error {
					copy(sum, mine)
					return e.Exchange(ctx, transport.Step{
						Signature: transport.Signature{Context: 1, Sequence: uint32(i), Call: "allreduce sum float64 count=1 algorithm=direct"},
						Sends:     sends, Recvs: recvs,
					})
				}
			})
		})
	}
}

func BenchmarkBcast(b *testing.B) {
	for _, size := range []int{8, 1 << 20, 4 << 20} {
		b.Run(fmt.Sprintf("bytes=%d/p=2", size), func(b *testing.B) {
			b.SetBytes(int64(size))
			together(b, 2, func(ctx context.Context, e *Endpoint) func(int) error {
				buf := make([]byte, size)
				step := transport.Step{Signature: transport.Signature{Context: 1, Call: "bcast"}}
				if e.Rank() == 0 {
					step.Sends = []transport.Send{{To: []int{1}, Data: buf}}
				} else {
					step.Recvs = []transport.Recv{{From: 0, Into: buf}}
				}
				return func(i int) error {
					step.Signature.Sequence = uint32(i)
					return e.Exchange(ctx, step)
				}
			})
		})
	}
}

// BenchmarkCopy is the lower bound of BenchmarkBcast.
func BenchmarkCopy(b *testing.B) {
	for _, size := range []int{1 << 20, 4 << 20} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			from, to := make([]byte, size), make([]byte, size)
			b.SetBytes(int64(size))
			for b.Loop() {
				copy(to, from)
			}
		})
	}
}
