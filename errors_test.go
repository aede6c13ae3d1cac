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
	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/inproc"
)

func TestArgumentErrorsLeaveTheCommunicatorUsable(t *testing.T) {
	buf := make([][8]int, 3) // one per rank
	for _, test := range []struct {
		name string
		call func(ctx context.Context, c *chorale.Comm) error
		want string
	}{
		{"root too large", func(ctx context.Context, c *chorale.Comm) error {
			return chorale.Bcast(ctx, c, []int{1}, 3)
		}, "chorale: bcast on rank R: no root 3: want 0 to 2"},
		{"root negative", func(ctx context.Context, c *chorale.Comm) error {
			return chorale.Reduce(ctx, c, nil, []int{1}, chorale.Sum, -1)
		}, "chorale: reduce on rank R: no root -1: want 0 to 2"},
		{"partial overlap", func(ctx context.Context, c *chorale.Comm) error {
			return chorale.AllReduce(ctx, c, buf[c.Rank()][0:4], buf[c.Rank()][2:6], chorale.Sum)
		}, "chorale: allreduce on rank R: dst and src overlap: want the same memory, or none in common"},
		{"another part than the rank's own", func(ctx context.Context, c *chorale.Comm) error {
			other := (c.Rank() + 1) % 3
			return chorale.AllGather(ctx, c, buf[c.Rank()][:6], buf[c.Rank()][2*other:2*other+2])
		}, "chorale: allgather on rank R: dst and src overlap: want the same memory, or none in common"},
		{"lengths differ", func(ctx context.Context, c *chorale.Comm) error {
			return chorale.AllReduce(ctx, c, make([]int, 2), make([]int, 3), chorale.Sum)
		}, "chorale: allreduce on rank R: dst has 2 elements: want 3, as many as src"},
		{"missing parts", func(ctx context.Context, c *chorale.Comm) error {
			return chorale.AllGather(ctx, c, make([]int, 5), make([]int, 2))
		}, "chorale: allgather on rank R: dst has 5 elements: want 6, 3 ranks times the 2 of src"},
		{"pointers", func(ctx context.Context, c *chorale.Comm) error {
			return chorale.Bcast(ctx, c, []string{"a"}, 0)
		}, "chorale: bcast on rank R: string is a string: want numbers, booleans, and arrays and structs of them"},
		{"pointers inside", func(ctx context.Context, c *chorale.Comm) error {
			return chorale.Bcast(ctx, c, []struct{ Next *int }{{}}, 0)
		}, "chorale: bcast on rank R: struct { Next *int }.Next cannot be sent: *int is a ptr: want numbers, booleans, and arrays and structs of them"},
		{"no such algorithm", func(ctx context.Context, c *chorale.Comm) error {
			return chorale.Barrier(ctx, c, chorale.WithAlgorithm("turnstile"))
		}, `chorale: barrier on rank R: algo: barrier: no algorithm "turnstile": want`},
		{"no operation", func(ctx context.Context, c *chorale.Comm) error {
			return chorale.AllReduceFunc(ctx, c, []int{1}, []int{1}, chorale.Op[int]{})
		}, "chorale: allreduce on rank R: the operation has no function: want Combine or CombineSlice"},
	} {
		t.Run(test.name, func(t *testing.T) {
			onRanks(t, 3, func(ctx context.Context, c *chorale.Comm) error {
				err := test.call(ctx, c)
				want := strings.ReplaceAll(test.want, "R", fmt.Sprint(c.Rank()))
				if err == nil || !strings.HasPrefix(err.Error(), want) || !errors.Is(err, chorale.ErrArgument) {
					return fmt.Errorf("got  %v\nwant %s", err, want)
				}
				return chorale.Barrier(ctx, c)
			})
		})
	}
}

func TestMismatchErrorsNameBothCalls(t *testing.T) {
	one := []int{1}
	for _, test := range []struct {
		name string
		zero func(ctx context.Context, c *chorale.Comm) error
		rest func(ctx context.Context, c *chorale.Comm) error
		want []string // parts of an error
	}{
		{"lengths", func(ctx context.Context, c *chorale.Comm) error {
			return chorale.AllReduce(ctx, c, one, one, chorale.Sum)
		}, func(ctx context.Context, c *chorale.Comm) error {
			return chorale.AllReduce(ctx, c, make([]int, 2), make([]int, 2), chorale.Sum)
		}, []string{"sum of 1 int", "sum of 2 int"}},
		{"operations", func(ctx context.Context, c *chorale.Comm) error {
			return chorale.AllReduce(ctx, c, make([]int, 1), one, chorale.Sum)
		}, func(ctx context.Context, c *chorale.Comm) error {
			return chorale.AllReduce(ctx, c, make([]int, 1), one, chorale.Max)
		}, []string{"allreduce sum of 1 int", "allreduce max of 1 int"}},
		{"roots that both only send", func(ctx context.Context, c *chorale.Comm) error {
			return chorale.Bcast(ctx, c, []int{1}, 0)
		}, func(ctx context.Context, c *chorale.Comm) error {
			return chorale.Bcast(ctx, c, []int{1}, 1)
		}, []string{"bcast", " int "}},
		{"types", func(ctx context.Context, c *chorale.Comm) error {
			return chorale.Bcast(ctx, c, []int{1}, 0)
		}, func(ctx context.Context, c *chorale.Comm) error {
			return chorale.Bcast(ctx, c, []float64{1}, 0)
		}, []string{"bcast of 1 int ", "bcast of 1 float64 "}},
		{"collectives", func(ctx context.Context, c *chorale.Comm) error {
			return chorale.Barrier(ctx, c)
		}, func(ctx context.Context, c *chorale.Comm) error {
			return chorale.Bcast(ctx, c, []float64{1}, 1)
		}, []string{"barrier", "bcast ", " float64 ", "errors_test.go:"}},
		{"a call that one rank omits", func(ctx context.Context, c *chorale.Comm) error {
			return chorale.Bcast(ctx, c, []int{1}, 0)
		}, func(ctx context.Context, c *chorale.Comm) error {
			if err := chorale.Barrier(ctx, c); err != nil {
				return err
			}
			return chorale.Bcast(ctx, c, []int{1}, 0)
		}, []string{"barrier", "bcast"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := chorale.Run(t.Context(), 2, func(ctx context.Context, c *chorale.Comm) error {
				if c.Rank() == 0 {
					return test.zero(ctx, c)
				}
				return test.rest(ctx, c)
			})
			if err == nil {
				t.Fatal("no error")
			}
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%v\ndoes not say %q", err, part)
				}
			}
		})
	}
}

func TestLastCallThatOneRankOmitsIsAnError(t *testing.T) {
	err := chorale.Run(t.Context(), 2, func(ctx context.Context, c *chorale.Comm) error {
		if c.Rank() == 1 {
			return chorale.Barrier(ctx, c)
		}
		if err := chorale.Barrier(ctx, c); err != nil {
			return err
		}
		return chorale.Bcast(ctx, c, []int{1}, 0) // needs no receiver to return
	})
	if err == nil || !strings.Contains(err.Error(), "bcast") {
		t.Errorf("got %v", err)
	}
}

func TestErrorNamesThePeerThatLeft(t *testing.T) {
	onRanks(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		if c.Rank() == 1 {
			return nil
		}
		err := chorale.Gather(ctx, c, make([]int, 2), []int{1}, 0)
		var e *chorale.Error
		if !errors.Is(err, chorale.ErrLeft) || !errors.As(err, &e) || e.Peer != 1 || e.Call != "gather" {
			return fmt.Errorf("got %v, want that rank 1 has left", err)
		}
		return nil
	})
}

func TestFirstErrorEndsTheJob(t *testing.T) {
	boom := errors.New("boom")
	err := chorale.Run(t.Context(), 4, func(ctx context.Context, c *chorale.Comm) error {
		if c.Rank() == 2 {
			return boom
		}
		return chorale.Barrier(ctx, c)
	})
	if !errors.Is(err, boom) || err.Error() != "rank 2: boom" {
		t.Errorf("got %v, want rank 2: boom", err)
	}
}

func TestGoexitOfARankEndsTheJob(t *testing.T) {
	err := chorale.Run(t.Context(), 2, func(ctx context.Context, c *chorale.Comm) error {
		if c.Rank() == 1 {
			runtime.Goexit()
		}
		return chorale.Barrier(ctx, c)
	})
	if err == nil || err.Error() != "rank 1: left by runtime.Goexit" {
		t.Errorf("got %v", err)
	}
}

func TestNilOperationIsAnArgumentError(t *testing.T) {
	onRanks(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		if err := chorale.AllReduce(ctx, c, []int{1}, []int{1}, nil); !errors.Is(err, chorale.ErrArgument) {
			return fmt.Errorf("got %v", err)
		}
		return nil
	})
}

// A rank whose function fails under [chorale.Main] aborts the job: its peers get
// ErrAborted with the reason, not ErrLeft.
func TestPeersLearnWhyARankAborts(t *testing.T) {
	mine := errors.New("mine")
	onEachTransport(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		if c.Rank() == 1 {
			chorale.Abort(c, mine)
			return nil
		}
		soon, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		err := chorale.Barrier(soon, c)
		if !errors.Is(err, chorale.ErrAborted) || !strings.Contains(err.Error(), "mine") {
			return fmt.Errorf("got %v, want that rank 1 gave up, and why", err)
		}
		return nil
	})
}

// lingering is an endpoint whose receivers take nothing: its Close waits until the
// endpoint fails.
type lingering struct {
	transport.Endpoint
	closing chan struct{}
	failed  chan error
}

func (l *lingering) Abort(why error) { l.failed <- why }

func (l *lingering) Close() error {
	close(l.closing)
	return &transport.UndeliveredError{Err: <-l.failed}
}

func TestEndOfTheContextEndsTheWaitForReceivers(t *testing.T) {
	for _, before := range []bool{true, false} {
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("enough")
		l := &lingering{inproc.New(1).Endpoint(0), make(chan struct{}), make(chan error, 1)}
		if before {
			cancel(why)
		}
		left := make(chan error, 1)
		go func() { left <- chorale.Leave(ctx, chorale.NewComm(l, chorale.CommConfig{}), nil) }()
		<-l.closing
		cancel(why)
		select {
		case err := <-left:
			if !errors.As(err, new(*transport.UndeliveredError)) || !errors.Is(err, why) {
				t.Errorf("ended before the rank leaves: %v: got %v, want what is not delivered, and why", before, err)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("ended before the rank leaves: %v: it waits on", before)
		}
	}
}

func TestPanicOfARankIsItsError(t *testing.T) {
	err := chorale.Run(t.Context(), 2, func(ctx context.Context, c *chorale.Comm) error {
		if c.Rank() == 1 {
			panic("boom")
		}
		return chorale.Barrier(ctx, c)
	})
	if err == nil || !strings.HasPrefix(err.Error(), "rank 1: panic: boom") {
		t.Errorf("got %v", err)
	}
}

func TestEndOfTheContextEndsTheCall(t *testing.T) {
	err := chorale.Run(t.Context(), 2, func(ctx context.Context, c *chorale.Comm) error {
		if c.Rank() == 1 {
			<-ctx.Done() // never calls
			return nil
		}
		ctx, cancel := context.WithCancel(ctx)
		go cancel()
		return chorale.Barrier(ctx, c)
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

// Nobody has canceled anything where a rank fails: its peers get its error, and no more.
func TestTheReasonOfARankThatFailsIsItsErrorAlone(t *testing.T) {
	full := errors.New("the disk is full")
	onEachTransport(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		if c.Rank() == 1 {
			chorale.Abort(c, full)
			return nil
		}
		err := chorale.Barrier(ctx, c)
		if !errors.Is(err, chorale.ErrAborted) || !strings.HasSuffix(err.Error(), "rank 1: the rank gave up: the disk is full") {
			return fmt.Errorf("got %v", err)
		}
		return nil
	})
}

func TestTheCauseOfAContextIsTheTextOfTheError(t *testing.T) {
	late := errors.New("too late")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(late)
	onRanks(t, 1, func(_ context.Context, c *chorale.Comm) error {
		_, err := chorale.Recv(ctx, c, []int{0}, 0, 1)
		if !errors.Is(err, late) || !errors.Is(err, context.Canceled) || !strings.HasSuffix(err.Error(), ": too late") || strings.Contains(err.Error(), "canceled") {
			return fmt.Errorf("got %v", err)
		}
		return nil
	})
}

func TestHandWrittenScheduleRuns(t *testing.T) {
	s, err := sched.ParseText([]byte(`
schedule allreduce exchange
ranks 2
rank 0
  step
    copy in 0..1 to out 0
    send in 0..1 to 1
    recv out 0..1 from 1 combine right
rank 1
  step
    copy in 0..1 to out 0
    send in 0..1 to 0
    recv out 0..1 from 0 combine left
`))
	if err != nil {
		t.Fatal(err)
	}
	onRanks(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		sum := []int{c.Rank() + 1, 10}
		var stats chorale.Stats
		if err := chorale.AllReduce(ctx, c, sum, sum, chorale.Sum, chorale.WithSchedule(s), chorale.WithStats(&stats)); err != nil {
			return err
		}
		if want := (chorale.Stats{Algorithm: "exchange", Steps: 1, Messages: 1, Bytes: 16, Time: stats.Time}); stats != want || stats.Time <= 0 {
			return fmt.Errorf("stats %+v, want %+v", stats, want)
		}
		return same(c, "sum", sum, []int{3, 20})
	})
	err = chorale.Run(t.Context(), 3, func(ctx context.Context, c *chorale.Comm) error {
		return chorale.AllReduce(ctx, c, []int{1}, []int{2}, chorale.Sum, chorale.WithSchedule(s))
	})
	if !errors.Is(err, chorale.ErrArgument) || !strings.Contains(err.Error(), "the schedule is for allreduce on 2 ranks with root 0: want allreduce on 3 ranks with root 0") {
		t.Errorf("got %v", err)
	}
}
