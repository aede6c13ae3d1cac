package tcp

import (
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/chorale-go/chorale/transport/internal/cluster"
)

// BenchmarkAllReduce is an allreduce of 8 bytes by recursive doubling, without
// the adding.
func BenchmarkAllReduce(b *testing.B) {
	for _, n := range []int{2, 4, 8} {
		b.Run(fmt.Sprintf("processes=%d", n), func(b *testing.B) {
			job := processes(b, n)
			job.RunAll(b, "swap", 8, 100)
			b.ReportAllocs()
			b.ResetTimer()
			job.RunAll(b, "swap", 8, b.N)
		})
	}
	b.Run("goroutines=2", func(b *testing.B) {
		inOneProcess(b, "swap", 8)
	})
}

// BenchmarkThroughput pours messages from one rank to another, or has the two
// swap them, and pours the same through a connection of package net.
func BenchmarkThroughput(b *testing.B) {
	for _, bytes := range []int{64 << 10, 1 << 20, 64 << 20} {
		for _, what := range []string{"bandwidth", "swap"} {
			name := fmt.Sprintf("%s/%dKiB/", what, bytes>>10)
			b.Run(name+"processes", func(b *testing.B) {
				b.SetBytes(int64(bytes))
				job := processes(b, 2)
				job.RunAll(b, what, bytes, 2)
				b.ResetTimer()
				job.RunAll(b, what, bytes, b.N)
			})
			b.Run(name+"encrypted", func(b *testing.B) {
				b.Setenv(encryptVar, "1")
				b.SetBytes(int64(bytes))
				job := processes(b, 2)
				job.RunAll(b, what, bytes, 2)
				b.ResetTimer()
				job.RunAll(b, what, bytes, b.N)
			})
			b.Run(name+"goroutines", func(b *testing.B) {
				b.SetBytes(int64(bytes))
				inOneProcess(b, what, bytes)
			})
		}
		b.Run(fmt.Sprintf("bandwidth/%dKiB/net", bytes>>10), func(b *testing.B) {
			b.SetBytes(int64(bytes))
			pourPlain(b, bytes)
		})
	}
}

// BenchmarkTagged has two ranks send a tagged message there and back, or one send
// tagged messages to the other, which replies to the last.
func BenchmarkTagged(b *testing.B) {
	for _, bytes := range []int{8, 4 << 10, 64 << 10, 1 << 20} {
		for _, what := range []string{"pingpong", "tagged"} {
			name := fmt.Sprintf("%s/bytes=%d/", what, bytes)
			b.Run(name+"processes", func(b *testing.B) {
				b.SetBytes(int64(bytes))
				job := processes(b, 2)
				job.RunAll(b, what, bytes, 10)
				b.ReportAllocs()
				b.ResetTimer()
				job.RunAll(b, what, bytes, b.N)
			})
			b.Run(name+"goroutines", func(b *testing.B) {
				b.SetBytes(int64(bytes))
				inOneProcess(b, what, bytes)
			})
		}
	}
}

func inOneProcess(b *testing.B, what string, bytes int) {
	ends, err := Loopback(2)
	if err != nil {
		b.Fatal(err)
	}
	defer ends[0].Close()
	defer ends[1].Close()
	ranks := [2]cluster.Rank{{Endpoint: ends[0]}, {Endpoint: ends[1]}}
	both := func(rounds int) {
		var running sync.WaitGroup
		for i := range ranks {
			running.Go(func() {
				if err := ranks[i].Run(what, bytes, rounds); err != nil {
					b.Error(err)
				}
			})
		}
		running.Wait()
	}
	both(2)
	b.ReportAllocs()
	b.ResetTimer()
	both(b.N)
}

// pourPlain pours b.N messages through a connection of package net.
func pourPlain(b *testing.B, bytes int) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	var reader sync.WaitGroup
	defer reader.Wait()
	reader.Go(func() {
		c, err := l.Accept()
		if err != nil {
			b.Error(err)
			return
		}
		defer c.Close()
		into := make([]byte, bytes)
		for range b.N {
			if _, err := io.ReadFull(c, into); err != nil {
				b.Error(err)
				return
			}
		}
		c.Write(into[:1])
	})
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	data := make([]byte, bytes)
	b.ResetTimer()
	for range b.N {
		if _, err := c.Write(data); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := io.ReadFull(c, data[:1]); err != nil {
		b.Fatal(err)
	}
}
