package chorale_test

import (
	"cmp"
	"context"
	"testing"

	"github.com/chorale-go/chorale"
	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/inproc"
	"github.com/chorale-go/chorale/transport/shm"
)

// BenchmarkMessage is what both ends of messages of 8 bytes take on one thread, where no cache
// line goes from one processor to another: of a message that is sent and received, of one that
// has arrived when its receive is started, of one whose receive is posted before, and of 16 of
// these.
func BenchmarkMessage(b *testing.B) {
	b.Run("shm", func(b *testing.B) { benchmarkMessage(b, sharedMemory(b)) })
	b.Run("inproc", func(b *testing.B) {
		j := inproc.New(2)
		benchmarkMessage(b, [2]transport.Endpoint{j.Endpoint(0), j.Endpoint(1)})
	})
}

func benchmarkMessage(b *testing.B, ends [2]transport.Endpoint) {
	ctx := b.Context()
	var ranks [2]*chorale.Comm
	for i, e := range ends {
		ranks[i] = chorale.NewComm(e, chorale.CommConfig{})
		b.Cleanup(func() { e.Close() })
	}
	var src [1]float64
	var dst [16]float64
	requests := make([]*chorale.Request, len(dst))
	for name, pass := range map[string]func(ctx context.Context) error{
		"received": func(ctx context.Context) error {
			err := chorale.Send(ctx, ranks[0], src[:], 1, 0)
			_, err2 := chorale.Recv(ctx, ranks[1], dst[:], 0, 0)
			return cmp.Or(err, err2)
		},
		"arrived": func(ctx context.Context) error {
			err := chorale.StartSend(ctx, ranks[0], src[:], 1, 0).Wait()
			return cmp.Or(err, chorale.StartRecv(ctx, ranks[1], dst[:], 0, 0).Wait())
		},
		"posted": func(ctx context.Context) error {
			r := chorale.StartRecv(ctx, ranks[1], dst[:], 0, 0)
			err := chorale.StartSend(ctx, ranks[0], src[:], 1, 0).Wait()
			return cmp.Or(err, r.Wait())
		},
		"window": func(ctx context.Context) (err error) {
			for i := range requests {
				requests[i] = chorale.StartRecv(ctx, ranks[1], dst[i:i+1], 0, 0).Request
			}
			for range requests {
				err = cmp.Or(err, chorale.StartSend(ctx, ranks[0], src[:], 1, 0).Wait())
			}
			return cmp.Or(err, chorale.WaitAll(requests...))
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := pass(ctx); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// sharedMemory returns two ranks over shared memory, both in this process.
func sharedMemory(b *testing.B) (ends [2]transport.Endpoint) {
	memory, err := shm.NewMemory(len(ends), [16]byte{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { memory.Close() })
	for i := range ends {
		if ends[i], err = shm.New(shm.Config{Rank: i, Size: len(ends), Memory: memory}); err != nil {
			b.Fatal(err)
		}
	}
	return ends
}
