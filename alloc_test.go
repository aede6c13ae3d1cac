package chorale_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/chorale-go/chorale"
	"github.com/chorale-go/chorale/transport/inproc"
	"github.com/chorale-go/chorale/transport/transporttest"
)

// steadyAllocs returns the allocations of a call on all ranks together, once it is
// cached.
func steadyAllocs(t *testing.T, p int, call func(ctx context.Context, c *chorale.Comm) error) float64 {
	t.Helper()
	const runs = 100
	var allocations float64
	onRanks(t, p, func(ctx context.Context, c *chorale.Comm) error {
		repeat := func(n int) error {
			for range n {
				if err := call(ctx, c); err != nil {
					return err
				}
			}
			return nil
		}
		if err := repeat(10); err != nil {
			return err
		}
		if c.Rank() > 0 {
			return repeat(runs + 1) // AllocsPerRun warms up with a run of its own
		}
		var err error
		allocations = testing.AllocsPerRun(runs, func() {
			if err == nil {
				err = call(ctx, c)
			}
		})
		return err
	})
	return allocations
}

func TestCachedCallAllocatesNothing(t *testing.T) {
	const n = 1000
	uneven := []int{1, 2, 3}
	for name, call := range map[string]func(ctx context.Context, c *chorale.Comm, buf []float64) error{
		"Bcast": func(ctx context.Context, c *chorale.Comm, buf []float64) error {
			return chorale.Bcast(ctx, c, buf[:n], 1)
		},
		"Reduce": func(ctx context.Context, c *chorale.Comm, buf []float64) error {
			return chorale.Reduce(ctx, c, buf[:n], buf[n:2*n], chorale.Sum, 1)
		},
		"AllReduce in place": func(ctx context.Context, c *chorale.Comm, buf []float64) error {
			return chorale.AllReduce(ctx, c, buf[:n], buf[:n], chorale.Max)
		},
		"AllReduce by recursive halving": func(ctx context.Context, c *chorale.Comm, buf []float64) error {
			return chorale.AllReduce(ctx, c, buf[:n], buf[n:2*n], chorale.Sum, chorale.WithAlgorithm("recursive-halving"))
		},
		"AllReduceFunc": func(ctx context.Context, c *chorale.Comm, buf []float64) error {
			return chorale.AllReduceFunc(ctx, c, buf[:n], buf[n:2*n], chorale.Op[float64]{Combine: average})
		},
		"AllReduceFunc over slices": func(ctx context.Context, c *chorale.Comm, buf []float64) error {
			return chorale.AllReduceFunc(ctx, c, buf[:n], buf[n:2*n], chorale.Op[float64]{CombineSlice: averages})
		},
		"Gather": func(ctx context.Context, c *chorale.Comm, buf []float64) error {
			return chorale.Gather(ctx, c, buf[:3*n], buf[3*n:4*n], 1)
		},
		"ScatterStrided": func(ctx context.Context, c *chorale.Comm, buf []float64) error {
			column := chorale.Strided[float64]{Data: buf[3*n:], Block: 1, Stride: 2, Count: n / 4}
			return chorale.ScatterStrided(ctx, c, column, chorale.Strided[float64]{Data: buf, Block: 3, Stride: 5, Count: n / 4}, 1)
		},
		"GatherStrided": func(ctx context.Context, c *chorale.Comm, buf []float64) error {
			column := chorale.Strided[float64]{Data: buf[3*n:], Block: 1, Stride: 2, Count: n / 4}
			return chorale.GatherStrided(ctx, c, chorale.Strided[float64]{Data: buf, Block: 3, Stride: 5, Count: n / 4}, column, 1)
		},
		"AllGather": func(ctx context.Context, c *chorale.Comm, buf []float64) error {
			return chorale.AllGather(ctx, c, buf[:3*n], buf[3*n:4*n])
		},
		"AllGatherV": func(ctx context.Context, c *chorale.Comm, buf []float64) error {
			return chorale.AllGatherV(ctx, c, buf[:6], buf[6:6+uneven[c.Rank()]], uneven)
		},
		"ReduceScatter": func(ctx context.Context, c *chorale.Comm, buf []float64) error {
			return chorale.ReduceScatter(ctx, c, buf[3*n:4*n], buf[:3*n], chorale.Sum)
		},
		"AllToAll": func(ctx context.Context, c *chorale.Comm, buf []float64) error {
			return chorale.AllToAll(ctx, c, buf[:3*n], buf[3*n:])
		},
		"Scan": func(ctx context.Context, c *chorale.Comm, buf []float64) error {
			return chorale.Scan(ctx, c, buf[:n], buf[:n], chorale.Min)
		},
		"Barrier": func(ctx context.Context, c *chorale.Comm, buf []float64) error {
			return chorale.Barrier(ctx, c)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bufs := [3][]float64{make([]float64, 6*n), make([]float64, 6*n), make([]float64, 6*n)}
			if got := steadyAllocs(t, 3, func(ctx context.Context, c *chorale.Comm) error {
				return call(ctx, c, bufs[c.Rank()])
			}); got != 0 {
				t.Errorf("%v allocations on 3 ranks, want 0", got)
			}
		})
	}
}

// A request belongs to the caller for as long as it likes, so that it is new each time.
func TestMessagesAllocateNothingButTheirRequests(t *testing.T) {
	if transporttest.UnderRace {
		t.Skip("under the race detector, pools drop some of what they are given")
	}
	for _, n := range []int{1, 100, 100_000} {
		for name, c := range map[string]struct {
			want float64 // on both ranks
			call func(ctx context.Context, c *chorale.Comm, out, in []float64, peer int) error
		}{
			"SendRecv": {0, func(ctx context.Context, c *chorale.Comm, out, in []float64, peer int) error {
				_, err := chorale.SendRecv(ctx, c, in, chorale.AnyRank, out, peer, 0)
				return err
			}},
			"SendRecvStrided": {0, func(ctx context.Context, c *chorale.Comm, out, in []float64, peer int) error {
				third := func(s []float64) chorale.Strided[float64] {
					return chorale.Strided[float64]{Data: s, Block: 1, Stride: 3, Count: (len(s) + 2) / 3}
				}
				_, err := chorale.SendRecvStrided(ctx, c, third(in), chorale.AnyRank, third(out), peer, 0)
				return err
			}},
			"Send, Probe and Recv": {0, func(ctx context.Context, c *chorale.Comm, out, in []float64, peer int) error {
				for turn := range 2 {
					if turn == c.Rank() {
						if err := chorale.Send(ctx, c, out, peer, 0); err != nil {
							return err
						}
						continue
					}
					if _, err := chorale.Probe[float64](ctx, c, peer, 0); err != nil {
						return err
					}
					if _, err := chorale.Recv(ctx, c, in, peer, 0); err != nil {
						return err
					}
				}
				return nil
			}},
			"StartSend, StartRecv and WaitAll": {4, func(ctx context.Context, c *chorale.Comm, out, in []float64, peer int) error {
				r := chorale.StartRecv(ctx, c, in, peer, 0)
				return chorale.WaitAll(r.Request, chorale.StartSend(ctx, c, out, peer, 0))
			}},
		} {
			t.Run(fmt.Sprintf("%s/%d", name, n), func(t *testing.T) {
				out, in := make([]float64, n), [2][]float64{make([]float64, n), make([]float64, n)}
				if got := steadyAllocs(t, 2, func(ctx context.Context, comm *chorale.Comm) error {
					return c.call(ctx, comm, out, in[comm.Rank()], 1-comm.Rank())
				}); got > c.want {
					t.Errorf("%v allocations on 2 ranks, want %v", got, c.want)
				}
			})
		}
	}
}

func average(a, b float64) float64 { return (a + b) / 2 }

func averages(dst, a, b []float64) {
	for i := range dst {
		dst[i] = average(a[i], b[i])
	}
}

func TestPreparedCallAllocatesNothing(t *testing.T) {
	for name, pause := range map[string]time.Duration{
		"short": 0,
		"longer than calls are left to the one that waits": 20 * chorale.StartDelay,
	} {
		t.Run(name, func(t *testing.T) {
			var prepared [2]*chorale.Persistent
			var buf [2][]float64
			if got := steadyAllocs(t, 2, func(ctx context.Context, c *chorale.Comm) (err error) {
				p := &prepared[c.Rank()]
				if *p == nil {
					buf[c.Rank()] = make([]float64, 8)
					if *p, err = chorale.Prepare(c, func(ctx context.Context, c *chorale.Comm) error {
						time.Sleep(pause)
						return chorale.AllReduce(ctx, c, buf[c.Rank()], buf[c.Rank()], chorale.Sum)
					}); err != nil {
						return err
					}
				}
				(*p).Start(ctx)
				return (*p).Wait()
			}); got != 0 {
				t.Errorf("%v allocations on 2 ranks, want 0", got)
			}
			for _, p := range prepared {
				p.Free()
			}
		})
	}
}

func TestCacheOfCallsIsBounded(t *testing.T) {
	onRanks(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		for n := range 2 * chorale.KeptCalls {
			v := make([]int, n)
			if err := chorale.AllReduce(ctx, c, v, v, chorale.Sum); err != nil {
				return fmt.Errorf("%d elements: %w", n, err)
			}
		}
		if got := c.Held().Calls; got != chorale.KeptCalls {
			return fmt.Errorf("%d calls are kept, want %d", got, chorale.KeptCalls)
		}
		return nil
	})
}

func TestAStartedReceiveOfWhatHasArrivedAllocatesNothing(t *testing.T) {
	const n = 4
	job := inproc.New(2) // both ranks in this goroutine
	var c [2]*chorale.Comm
	for rank := range c {
		c[rank] = chorale.NewComm(job.Endpoint(rank), chorale.CommConfig{Transport: "inproc"})
		defer c[rank].Close()
	}
	src, dst := []int{1}, []int{0}
	allocations := testing.AllocsPerRun(100, func() {
		for tag := range n {
			if err := chorale.StartSend(t.Context(), c[0], src, 1, tag).Wait(); err != nil {
				t.Error(err)
			}
		}
		for tag := range n {
			want := chorale.Status{From: 0, Tag: tag, Count: 1}
			if s := chorale.StartRecv(t.Context(), c[1], dst, 0, tag).Status(); s != want {
				t.Errorf("receive %d has the status %+v", tag, s)
			}
		}
	})
	if allocations != 0 {
		t.Errorf("%v allocations, want 0", allocations)
	}
}
