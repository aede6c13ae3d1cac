package chorale_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chorale-go/chorale"
	"github.com/chorale-go/chorale/transport"
)

func TestRunNamesAllRanksThatShareAnError(t *testing.T) {
	err := chorale.Run(t.Context(), 4, func(ctx context.Context, c *chorale.Comm) error {
		return chorale.AllReduce(ctx, c, make([]int, 3), make([]int, 4), chorale.Sum)
	})
	if want := "ranks 0–3: allreduce: dst has 3 elements: want 4, as many as src"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if !errors.Is(err, chorale.ErrArgument) {
		t.Errorf("%v is no ErrArgument", err)
	}

	boom := errors.New("boom")
	err = chorale.Run(t.Context(), 4, func(ctx context.Context, c *chorale.Comm) error {
		if c.Rank() == 0 {
			return chorale.Barrier(ctx, c)
		}
		panic(boom)
	})
	if err == nil || !strings.HasPrefix(err.Error(), "ranks 1–3: panic: boom (") || !errors.Is(err, boom) {
		t.Errorf("got %v, want the panic of ranks 1–3", err)
	}
}

func TestTheStackOfAPanicBeginsWhereItWasAndOtherRanksDoNotRepeatIt(t *testing.T) {
	type fails func() // so that its calls have this test's name
	reasons := make([]error, 2)
	err := chorale.Run(t.Context(), 2, func(ctx context.Context, c *chorale.Comm) error {
		if c.Rank() == 1 {
			fails(func() { panic("boom") })()
		}
		reasons[c.Rank()] = chorale.Barrier(ctx, c)
		return nil
	})
	if err == nil {
		t.Fatal("no error")
	}
	var panicked *chorale.PanicError
	if !errors.As(err, &panicked) {
		t.Fatalf("%v is no PanicError", err)
	}
	lines := strings.Split(panicked.Stack, "\n")
	if len(lines) < 2 || !strings.Contains(lines[1], t.Name()) {
		t.Errorf("the stack does not begin where the panic was:\n%s", panicked.Stack)
	}
	if got := fmt.Sprint(reasons[0]); !strings.Contains(got, "panic: boom (") || strings.Contains(got, "goroutine ") {
		t.Errorf("the other rank's reason is %q", got)
	}
}

func TestACallAfterAFailureSaysWhatFailedEarlierAndWhen(t *testing.T) {
	for _, name := range transports {
		over := make(chan bool)
		t.Run(name, func(t *testing.T) {
			onTransport(t, name, 2, func(ctx context.Context, c *chorale.Comm) error {
				if c.Rank() == 1 {
					<-over
					return nil
				}
				defer close(over)
				short, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
				defer cancel()
				first := chorale.Barrier(short, c)
				if !errors.Is(first, context.DeadlineExceeded) || strings.Contains(first.Error(), "earlier") {
					return fmt.Errorf("first %v", first)
				}
				time.Sleep(3 * time.Millisecond)
				earlier := regexp.MustCompile(`the communicator failed \S+ earlier, when its barrier failed in step 1: .*deadline exceeded$`)
				_, received := chorale.Recv(ctx, c, []int{0}, 1, 7)
				for _, err := range []error{chorale.AllReduce(ctx, c, []int{1}, []int{2}, chorale.Sum), received} {
					if !errors.Is(err, context.DeadlineExceeded) || !earlier.MatchString(fmt.Sprint(err)) {
						return fmt.Errorf("then %v: want that the barrier failed earlier", err)
					}
				}
				return nil
			})
		})
	}
}

func TestErrorsOfMessagesNamePeerTagAndElements(t *testing.T) {
	onEachTransport(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		if c.Rank() == 1 {
			return chorale.Send(ctx, c, make([]int32, 3), 0, 7)
		}
		check := func(err error, want string) error {
			var e *chorale.Error
			if !errors.As(err, &e) || e.Message != want || !strings.Contains(err.Error(), ", "+want) {
				return fmt.Errorf("got %v: want %q", err, want)
			}
			return nil
		}
		_, typed := chorale.Recv(ctx, c, make([]float64, 4), 1, 7)
		_, sized := chorale.Recv(ctx, c, make([]int32, 2), chorale.AnyRank, chorale.AnyTag)
		started := chorale.StartRecv(ctx, c, make([]int32, 1), 1, 7).Wait()
		over, cancel := context.WithCancel(ctx)
		cancel()
		_, probed := chorale.Probe[int64](over, c, 1, 8)
		_, err := chorale.Recv(ctx, c, make([]int32, 3), 1, 7)
		return errors.Join(
			check(typed, "4 float64 from rank 1 with tag 7"),
			check(sized, "2 int32 from any rank with any tag"),
			check(started, "1 int32 from rank 1 with tag 7"),
			check(probed, "int64 from rank 1 with tag 8"),
			check(chorale.Send(over, c, make([]int64, 5), 1, 9), "5 int64 to rank 1 with tag 9"),
			err)
	})
}

func TestATaggedMessageThatNobodyReceivesIsAnErrorOfRun(t *testing.T) {
	for _, length := range []int{0, 3, 1000, 100_000} {
		err := chorale.Run(t.Context(), 3, func(ctx context.Context, c *chorale.Comm) error {
			var r *chorale.Request
			if c.Rank() == 0 {
				r = chorale.StartSend(ctx, c, make([]int64, length), 2, 7)
			}
			if err := chorale.Barrier(ctx, c); err != nil || r == nil {
				return err
			}
			return r.Wait()
		})
		want := fmt.Sprintf("rank 2: leaves without having received the message with tag 7 that rank 0 sent, %d bytes of type int64", 8*length)
		var unreceived *transport.UnreceivedError
		if err == nil || err.Error() != want || !errors.As(err, &unreceived) {
			t.Errorf("%d elements: got %v, want %s", length, err, want)
		}
	}
}

// A rank may hear that another one has given up, and return, before that one returns.
func TestRunReturnsTheCauseAndNotWhatOtherRanksHaveHeardOfIt(t *testing.T) {
	why := errors.New("why not")
	for range 200 {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		err := chorale.Run(ctx, 4, func(ctx context.Context, c *chorale.Comm) error {
			return chorale.AllReduce(ctx, c, make([]int, 1), []int{1}, chorale.Sum)
		})
		if !errors.Is(err, why) || !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v: want an error that holds the context's", err)
		}
	}
}
