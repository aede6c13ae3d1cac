package chorale_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/chorale-go/chorale"
)

// everyCall makes each call of the package on a communicator, and returns their errors
// by name.
func everyCall(ctx context.Context, c *chorale.Comm) map[string]error {
	v, all := make([]int, 1), make([]int, max(1, c.Size()))
	counts := make([]int, c.Size())
	for i := range counts {
		counts[i] = 1
	}
	op := chorale.Op[int]{Combine: func(a, b int) int { return a + b }}
	f := func(context.Context, *chorale.Comm) error { return nil }
	second := func(_ any, err error) error { return err }
	_, _, tryProbe := chorale.TryProbe[int](ctx, c, 0, 0)
	return map[string]error{
		"Bcast":              chorale.Bcast(ctx, c, v, 0),
		"Reduce":             chorale.Reduce(ctx, c, v, v, chorale.Sum, 0),
		"AllReduce":          chorale.AllReduce(ctx, c, v, v, chorale.Sum),
		"AllReduceFunc":      chorale.AllReduceFunc(ctx, c, v, v, op),
		"AllReduce, lengths": chorale.AllReduce(ctx, c, v, all[:0], chorale.Sum),
		"Scatter":            chorale.Scatter(ctx, c, v, all, 0),
		"ScatterV":           chorale.ScatterV(ctx, c, v, all, counts, 0),
		"Gather":             chorale.Gather(ctx, c, all, v, 0),
		"GatherV":            chorale.GatherV(ctx, c, all, v, counts, 0),
		"AllGather":          chorale.AllGather(ctx, c, all, v),
		"AllGatherV":         chorale.AllGatherV(ctx, c, all, v, counts),
		"ReduceScatter":      chorale.ReduceScatter(ctx, c, v, all, chorale.Sum),
		"ReduceScatterV":     chorale.ReduceScatterV(ctx, c, v, all, counts, chorale.Sum),
		"AllToAll":           chorale.AllToAll(ctx, c, all, all),
		"AllToAllV":          chorale.AllToAllV(ctx, c, all, make([]int, len(all)), counts, counts),
		"Scan":               chorale.Scan(ctx, c, v, v, chorale.Sum),
		"ExScan":             chorale.ExScan(ctx, c, v, v, chorale.Sum),
		"Shift":              chorale.Shift(ctx, c, v, v, 1),
		"Barrier":            chorale.Barrier(ctx, c),
		"Send":               chorale.Send(ctx, c, v, 0, 0),
		"Recv":               second(chorale.Recv(ctx, c, v, 0, 0)),
		"Recv RoundRobin":    second(chorale.Recv(ctx, c, v, chorale.RoundRobin, 0)),
		"SendRecv":           second(chorale.SendRecv(ctx, c, v, 0, v, 0, 0)),
		"SendStrided":        chorale.SendStrided(ctx, c, chorale.Contiguous(v), 0, 0),
		"RecvStrided":        second(chorale.RecvStrided(ctx, c, chorale.Contiguous(v), 0, 0)),
		"SendRecvStrided":    second(chorale.SendRecvStrided(ctx, c, chorale.Contiguous(v), 0, chorale.Contiguous(v), 0, 0)),
		"ScatterStrided":     chorale.ScatterStrided(ctx, c, chorale.Contiguous(v), chorale.Contiguous(all), 0),
		"GatherStrided":      chorale.GatherStrided(ctx, c, chorale.Contiguous(all), chorale.Contiguous(v), 0),
		"Probe":              second(chorale.Probe[int](ctx, c, 0, 0)),
		"TryProbe":           tryProbe,
		"StartSend":          chorale.StartSend(ctx, c, v, 0, 0).Wait(),
		"StartRecv":          chorale.StartRecv(ctx, c, v, 0, 0).Wait(),
		"Start":              chorale.Start(ctx, c, f).Wait(),
		"StartBarrier":       chorale.StartBarrier(ctx, c).Wait(),
		"Prepare":            second(chorale.Prepare(c, f)),
		"Split":              second(c.Split(ctx, 0, 0)),
		"Dup":                second(c.Dup(ctx)),
		"Subset":             second(c.Subset(ctx, []int{0})),
		"CreateGroup":        second(c.CreateGroup(ctx, []int{0}, 0)),
		"Grid":               second(c.Grid(ctx, []int{1}, nil)),
	}
}

func TestEveryCallOnAFreedCommunicatorIsErrClosed(t *testing.T) {
	onEachTransport(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		d, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		grid, err := c.Grid(ctx, []int{2}, nil)
		if err != nil {
			return err
		}
		prepared, err := chorale.Prepare(d, func(ctx context.Context, c *chorale.Comm) error { return chorale.Barrier(ctx, c) })
		if err != nil {
			return err
		}
		// Its calls have been in use.
		if err := errors.Join(chorale.Barrier(ctx, d), chorale.StartBarrier(ctx, d).Wait()); err != nil {
			return err
		}
		d.Free()
		d.Free()
		grid.Free()
		calls := everyCall(ctx, d)
		_, calls["Line"] = grid.Line(ctx, 0)
		prepared.Start(ctx)
		calls["Start of a prepared call"] = prepared.Wait()
		for name, err := range calls {
			if !errors.Is(err, chorale.ErrClosed) {
				return fmt.Errorf("%s: got %v, want ErrClosed", name, err)
			}
		}
		return chorale.Barrier(ctx, c)
	})
}

func TestEveryCallOnANilCommunicatorSaysSo(t *testing.T) {
	onRanks(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		none, err := c.Split(ctx, -1, 0)
		if none != nil || err != nil {
			return fmt.Errorf("got %v, %v", none, err)
		}
		calls := everyCall(ctx, none)
		calls["Close"] = none.Close()
		var grid *chorale.Grid
		_, calls["Line"] = grid.Line(ctx, 0)
		for name, err := range calls {
			if !errors.Is(err, chorale.ErrArgument) || !strings.Contains(err.Error(), "the communicator is nil") {
				return fmt.Errorf("%s: got %v, want that the communicator is nil", name, err)
			}
		}
		none.Free()
		_, ok := grid.Neighbor(0, 1)
		_, at := grid.RankAt(0)
		if none.Rank() != -1 || none.Size() != 0 || none.Held() != (chorale.Held{}) || ok || at || grid.Coordinates(0) != nil {
			return errors.New("a nil communicator has ranks")
		}
		return nil
	})
}

// The communicators of Start and Prepare end with their calls. What a function does to
// its own one must not touch later calls.
func TestCommunicatorOfANonblockingCallIsForThatCallAlone(t *testing.T) {
	onEachTransport(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		var inside, prepare error
		f := func(ctx context.Context, own *chorale.Comm) error {
			inside = chorale.StartBarrier(ctx, own).Wait()
			_, prepare = chorale.Prepare(own, func(context.Context, *chorale.Comm) error { return nil })
			own.Free()
			d, err := own.Dup(ctx)
			if err != nil {
				return err
			}
			defer d.Free()
			return chorale.StartBarrier(ctx, d).Wait()
		}
		for range 20 { // more than can be in progress
			if err := chorale.Start(ctx, c, f).Wait(); err != nil {
				return err
			}
			if !errors.Is(inside, chorale.ErrArgument) || !errors.Is(prepare, chorale.ErrArgument) {
				return fmt.Errorf("calls of its own: got %v and %v, want ErrArgument", inside, prepare)
			}
		}
		return nil
	})
}

func TestPanicOrGoexitOfAStartedFunctionEndsTheRanksPart(t *testing.T) {
	for how, fail := range map[string]func(){"boom": func() { panic("boom") }, "runtime.Goexit": runtime.Goexit} {
		for _, prepared := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/prepared=%v", how, prepared), func(t *testing.T) {
				onEachTransport(t, 2, func(ctx context.Context, c *chorale.Comm) error {
					f := func(ctx context.Context, own *chorale.Comm) error {
						if own.Rank() == 1 {
							fail()
						}
						return chorale.Barrier(ctx, own)
					}
					var err error
					if prepared {
						p, e := chorale.Prepare(c, f)
						if e != nil {
							return e
						}
						p.Start(ctx)
						err = p.Wait()
					} else {
						err = chorale.Start(ctx, c, f).Wait()
					}
					if err == nil || !strings.Contains(err.Error(), "on rank 1") || !strings.Contains(err.Error(), how) {
						return fmt.Errorf("rank %d: got %v, want an error that names rank 1 and %s", c.Rank(), err, how)
					}
					return nil
				})
			})
		}
	}
}

func TestPreparedCallsLeaveNoGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 50 {
		onRanks(t, 4, func(ctx context.Context, c *chorale.Comm) error {
			p, err := chorale.Prepare(c, func(ctx context.Context, c *chorale.Comm) error { return chorale.Barrier(ctx, c) })
			if err != nil {
				return err
			}
			p.Start(ctx)
			return p.Wait() // and no Free
		})
	}
	for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, want the %d of before", runtime.NumGoroutine(), before)
		}
	}
}

func TestPreparedCallIsStartedAndWaitedForInTurn(t *testing.T) {
	onRanks(t, 1, func(ctx context.Context, c *chorale.Comm) error {
		calls := 0
		begin := make(chan struct{})
		p, err := chorale.Prepare(c, func(ctx context.Context, c *chorale.Comm) error {
			<-begin
			calls++
			return nil
		})
		if err != nil {
			return err
		}
		if err := p.Wait(); !errors.Is(err, chorale.ErrArgument) {
			return fmt.Errorf("Wait without Start: got %v", err)
		}
		p.Start(ctx)
		p.Start(ctx)
		close(begin)
		if err := p.Wait(); !errors.Is(err, chorale.ErrBusy) || calls != 1 {
			return fmt.Errorf("started twice: got %v after %d calls", err, calls)
		}
		p.Start(ctx)
		p.Free() // waits
		if err := p.Wait(); err != nil || calls != 2 {
			return fmt.Errorf("freed in progress: got %v after %d calls", err, calls)
		}
		return nil
	})
}

func TestFreeDoesNotDisturbCallsThatWereStarted(t *testing.T) {
	onEachTransport(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		d, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		var calls []*chorale.Request
		for range 40 { // more than can be in progress
			calls = append(calls, chorale.Start(ctx, d, func(ctx context.Context, c *chorale.Comm) error {
				return errors.Join(chorale.Barrier(ctx, c), chorale.Barrier(ctx, c))
			}))
		}
		d.Free()
		return chorale.WaitAll(calls...)
	})
}
