package chorale_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chorale-go/chorale"
	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/sched"
)

// A reduction is a call of a collective that combines, and its right result.
type reduction struct {
	collective sched.Collective
	call       func(ctx context.Context, c *chorale.Comm, dst []int64, op chorale.Op[int64], o chorale.Option) error
	want       func(rank, p int) []int64 // nil: the rank has no result
}

const perRank = 3 // elements of each part

var reductions = []reduction{
	{sched.Reduce, func(ctx context.Context, c *chorale.Comm, dst []int64, op chorale.Op[int64], o chorale.Option) error {
		return chorale.ReduceFunc(ctx, c, dst, vector(c.Rank(), len(dst)), op, 0, o)
	}, func(rank, p int) []int64 {
		if rank != 0 {
			return nil
		}
		return total(p, perRank*p)
	}},
	{sched.AllReduce, func(ctx context.Context, c *chorale.Comm, dst []int64, op chorale.Op[int64], o chorale.Option) error {
		return chorale.AllReduceFunc(ctx, c, dst, vector(c.Rank(), len(dst)), op, o)
	}, func(rank, p int) []int64 { return total(p, perRank*p) }},
	{sched.ReduceScatter, func(ctx context.Context, c *chorale.Comm, dst []int64, op chorale.Op[int64], o chorale.Option) error {
		return chorale.ReduceScatterFunc(ctx, c, dst[:perRank], vector(c.Rank(), len(dst)), op, o)
	}, func(rank, p int) []int64 { return totalFrom(p, perRank*rank, perRank) }},
	{sched.Scan, func(ctx context.Context, c *chorale.Comm, dst []int64, op chorale.Op[int64], o chorale.Option) error {
		return chorale.ScanFunc(ctx, c, dst, vector(c.Rank(), len(dst)), op, o)
	}, func(rank, p int) []int64 { return total(rank+1, perRank*p) }},
	{sched.ExScan, func(ctx context.Context, c *chorale.Comm, dst []int64, op chorale.Op[int64], o chorale.Option) error {
		return chorale.ExScanFunc(ctx, c, dst, vector(c.Rank(), len(dst)), op, o)
	}, func(rank, p int) []int64 {
		if rank == 0 {
			return nil
		}
		return total(rank, perRank*p)
	}},
}

// failsAt returns an addition that calls fail at its kth combination, and whether it
// has come to that.
func failsAt(k int, fail func()) (op chorale.Op[int64], failed *bool) {
	failed = new(bool)
	return chorale.Op[int64]{Commutative: true, Combine: func(a, b int64) int64 {
		if k--; k < 0 {
			*failed = true
			fail()
		}
		return a + b
	}}, failed
}

// sliceFailsAt is failsAt for an operation over slices.
func sliceFailsAt(k int, fail func()) (op chorale.Op[int64], failed *bool) {
	op, failed = failsAt(k, fail)
	combine := op.Combine
	op.Combine, op.CombineSlice = nil, func(dst, a, b []int64) {
		for i := range dst {
			dst[i] = combine(a[i], b[i])
		}
	}
	return op, failed
}

// operationFails makes a call in which the operation of one rank fails at its kth
// combination. It reports whether it has come to that. Failing is failsAt or sliceFailsAt.
func operationFails(t *testing.T, transport string, p, rank, k int, r reduction, o chorale.Option, failing func(int, func()) (chorale.Op[int64], *bool), fail func()) (failed bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	results, errs, finished := make([][]int64, p), make([]error, p), make([]bool, p)
	onTransport(t, transport, p, func(_ context.Context, c *chorale.Comm) error {
		me := c.Rank()
		var done sync.WaitGroup
		done.Go(func() { // a goroutine of its own, because of Goexit
			op, myFailed := failing(1<<30, nil)
			if me == rank {
				op, myFailed = failing(k, fail)
				defer func() { failed = *myFailed }()
			}
			results[me] = make([]int64, perRank*p)
			errs[me] = r.call(ctx, c, results[me], op, o)
			finished[me] = true
		})
		done.Wait()
		return nil
	})
	for me := range p {
		switch want := r.want(me, p); {
		case !finished[me] && me == rank: // by Goexit
		case errs[me] == nil:
			if want != nil && !slices.Equal(results[me][:len(want)], want) {
				t.Errorf("rank %d has %v without an error, want %v", me, results[me], want)
			}
			if failed && me == rank {
				t.Errorf("rank %d has no error, and its operation failed", me)
			}
		case !failed:
			t.Errorf("rank %d: %v, and no operation failed", me, errs[me])
		case !strings.Contains(errs[me].Error(), fmt.Sprintf("on rank %d", rank)) || !strings.Contains(errs[me].Error(), "the operation"):
			t.Errorf("rank %d: %v: want an error that names rank %d and its operation", me, errs[me], rank)
		}
	}
	return failed
}

// Whatever the collective, the algorithm, the rank and the combination at which its
// operation panics: every rank has the right result, or an error that names the rank.
func TestPanicOfAnOperationLeavesNoWrongResult(t *testing.T) {
	for _, r := range reductions {
		for p := 2; p <= 5; p++ {
			for _, a := range algo.For(r.collective) {
				if a.Restrictions.Allow(p) != nil {
					continue
				}
				t.Run(fmt.Sprintf("%v/%s/p=%d", r.collective, a.Name, p), func(t *testing.T) {
					for rank := range p {
						for k := 0; operationFails(t, "inproc", p, rank, k, r, chorale.WithAlgorithm(a.Name), failsAt, func() { panic("boom") }); k += 2 {
						}
					}
				})
			}
		}
	}
}

func TestPanicOrGoexitOfAnOperationOnEachTransport(t *testing.T) {
	for how, fail := range map[string]func(){"panic": func() { panic("boom") }, "Goexit": runtime.Goexit} {
		for _, transport := range transports {
			for _, r := range reductions {
				t.Run(fmt.Sprintf("%s/%s/%v", how, transport, r.collective), func(t *testing.T) {
					for rank := range 3 {
						operationFails(t, transport, 3, rank, 2, r, chorale.WithAlgorithm(""), failsAt, fail)
						operationFails(t, transport, 3, rank, 2, r, chorale.WithAlgorithm(""), sliceFailsAt, fail)
					}
				})
			}
		}
	}
}

func TestRankWhoseOperationPanickedIsOut(t *testing.T) {
	onEachTransport(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		bad := chorale.Op[int]{Combine: func(a, b int) int { panic("boom") }}
		err := chorale.AllReduceFunc(ctx, c, make([]int, 1), []int{1}, bad)
		if err == nil || !strings.Contains(err.Error(), "the operation panicked: boom") {
			return fmt.Errorf("got %v", err)
		}
		if err := chorale.Barrier(ctx, c); err == nil || !strings.Contains(err.Error(), "boom") {
			return fmt.Errorf("a later call: got %v", err)
		}
		return nil
	})
}

func TestOperationMayCallTheLibrary(t *testing.T) {
	onEachTransport(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		other, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		var inside []error
		op := chorale.Op[int]{Combine: func(a, b int) int {
			_, _, probe := chorale.TryProbe[int](ctx, c, chorale.AnyRank, 9)
			sum := []int{1}
			inside = append(inside, probe,
				chorale.Send(ctx, c, make([]byte, 100), 1-c.Rank(), 0),
				chorale.AllReduce(ctx, other, sum, sum, chorale.Sum),
				same(c, "sum", sum, []int{2}))
			return a + b
		}}
		sum := []int{1, 2, 3}
		if err := chorale.AllReduceFunc(ctx, c, sum, sum, op); err != nil {
			return err
		}
		for range 3 {
			if _, err := chorale.Recv(ctx, c, make([]byte, 100), 1-c.Rank(), 0); err != nil {
				return err
			}
		}
		return errors.Join(append(inside, same(c, "sum", sum, []int{2, 4, 6}))...)
	})
}

// An Op whose Combine is set is the caller's, also if it began as a built-in one.
func TestCombineReplacesABuiltinOperation(t *testing.T) {
	onRanks(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		op := chorale.Sum[int]()
		op.Combine = func(a, b int) int { return a * b }
		product := []int{3 + c.Rank()}
		if err := chorale.AllReduceFunc(ctx, c, product, product, op); err != nil {
			return err
		}
		return same(c, "product", product, []int{12})
	})
}
