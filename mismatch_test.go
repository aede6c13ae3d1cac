package chorale_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/chorale-go/chorale"
	"github.com/chorale-go/chorale/transport/inproc"
)

// lineAfter returns the line of this file that is so many below the caller's, as errors have
// it, for a regular expression.
func lineAfter(n int) string {
	_, _, line, _ := runtime.Caller(1)
	return fmt.Sprintf(`\([^/ ]+/mismatch_test\.go:%d\)`, line+n)
}

func TestRanksThatCallDifferentThingsAreOneErrorWithTheLineOfEachCall(t *testing.T) {
	var sum, bcast string
	err := chorale.Run(t.Context(), 4, func(ctx context.Context, c *chorale.Comm) error {
		x := make([]float64, 8)
		if c.Rank() == 2 {
			bcast = lineAfter(1)
			return chorale.Bcast(ctx, c, x, 0)
		}
		if c.Rank() == 0 {
			sum = lineAfter(2)
		}
		return chorale.AllReduce(ctx, c, x, x, chorale.Sum)
	})
	want := `^ranks differ in what they call: ranks 0–1, 3 called allreduce sum of 8 float64 ` + sum + `, rank 2 bcast of 8 float64 with root 0 ` + bcast + `$`
	if err == nil || !regexp.MustCompile(want).MatchString(err.Error()) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	var mismatch *chorale.MismatchError
	if !errors.As(err, &mismatch) {
		t.Errorf("%v is no MismatchError", err)
	}
}

func TestACallThatWasCompleteBeforeItsMismatchWasFoundIsNamedToo(t *testing.T) {
	var sum string
	err := chorale.Run(t.Context(), 2, func(ctx context.Context, c *chorale.Comm) error {
		x := make([]float64, 8)
		if c.Rank() == 1 {
			return chorale.Bcast(ctx, c, x, 1) // of so few elements, rank 1 waits for nobody
		}
		sum = lineAfter(1)
		return chorale.AllReduce(ctx, c, x, x, chorale.Sum)
	})
	// Whether rank 1 finds the message of rank 0 before it leaves is open.
	want := `^ranks differ in what they call: rank 0 called allreduce sum of 8 float64 (` + sum + `)?.*, rank 1 bcast of 8 float64 with root 1$`
	if err == nil || !regexp.MustCompile(want).MatchString(err.Error()) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// Rank 1 has left when rank 2, which takes it for the root, waits for it.
func TestRanksWithDifferentRootsDifferInWhatTheyCall(t *testing.T) {
	for range 30 {
		err := chorale.Run(t.Context(), 4, func(ctx context.Context, c *chorale.Comm) error {
			root := 0
			if c.Rank() == 2 {
				root = 1
			}
			return chorale.Bcast(ctx, c, make([]float64, 4), root)
		})
		const want = `^ranks differ in what they call: .*bcast of 4 float64 with root [01]\b.*bcast of 4 float64 with root [01]\b`
		if err == nil || !regexp.MustCompile(want).MatchString(err.Error()) {
			t.Fatalf("got  %v\nwant %s", err, want)
		}
	}
}

func TestAMismatchSaysWhereThisRankHasMadeItsCall(t *testing.T) {
	for _, name := range transports {
		t.Run(name, func(t *testing.T) {
			lines := make([]string, 2)
			errs := make([]error, 2)
			onTransport(t, name, 2, func(ctx context.Context, c *chorale.Comm) error {
				x := make([]int, 3)
				if c.Rank() == 0 {
					lines[0] = lineAfter(1)
					errs[0] = chorale.Bcast(ctx, c, x, 1)
					return nil
				}
				r := chorale.StartBarrier(ctx, c) // the line of a nonblocking call is that of its Wait
				lines[1] = lineAfter(1)
				errs[1] = chorale.Bcast(ctx, c, x[:2], 1)
				_ = r.Wait()
				return nil
			})
			found := 0
			for rank, err := range errs {
				var mismatch *chorale.MismatchError
				if !errors.As(err, &mismatch) {
					continue
				}
				found++
				if want := fmt.Sprintf(`^chorale: bcast on rank %d, step 1 %s: ranks differ`, rank, lines[rank]); !regexp.MustCompile(want).MatchString(err.Error()) {
					t.Errorf("got  %v\nwant %s", err, want)
				}
			}
			if found == 0 {
				t.Errorf("no mismatch: %v", errs)
			}
		})
	}
}

func TestTheLineOfANonblockingCallThatDiffersIsThatOfItsWait(t *testing.T) {
	var wait string
	err := chorale.Run(t.Context(), 2, func(ctx context.Context, c *chorale.Comm) error {
		r := chorale.StartAllReduce(ctx, c, make([]int, 1+c.Rank()), make([]int, 1+c.Rank()), chorale.Sum)
		<-r.Done()
		if c.Rank() == 0 {
			wait = lineAfter(2)
		}
		return r.Wait()
	})
	want := `^ranks differ in what they call: rank 0 called allreduce sum of 1 int ` + wait + `, rank 1 allreduce sum of 2 int ` + wait + `$`
	if err == nil || !regexp.MustCompile(want).MatchString(err.Error()) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestSizesAreCountedInElements(t *testing.T) {
	onEachTransport(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		if c.Rank() == 0 {
			return chorale.Send(ctx, c, make([]float64, 5), 1, 7)
		}
		line := lineAfter(1)
		_, err := chorale.Recv(ctx, c, make([]float64, 3), 0, 7)
		want := `recv on rank 1, 3 float64 from rank 0 with tag 7 ` + line + `: message from rank 0 has 5 float64, want 3$`
		if err == nil || !regexp.MustCompile(want).MatchString(err.Error()) {
			return fmt.Errorf("got  %v\nwant %s", err, want)
		}
		_, err = chorale.Recv(ctx, c, make([]float64, 5), 0, 7)
		return err
	})
	err := chorale.Run(t.Context(), 2, func(ctx context.Context, c *chorale.Comm) error {
		counts := []int{1, 1}
		theirs := []int{1, 1 + c.Rank()} // rank 1 sends itself one more
		if c.Rank() == 1 {
			theirs = []int{3, 1}
		}
		return chorale.AllToAllV(ctx, c, make([]int64, 2), make([]int64, theirs[0]+theirs[1]), counts, theirs)
	})
	if err == nil || !regexp.MustCompile(`^rank 0: alltoall, step \d+ \(.*mismatch_test.go:\d+\): message from rank 1 has 3 int64, want 1$`).MatchString(err.Error()) {
		t.Errorf("got %v", err)
	}
}

func TestANilContextIsAnArgumentErrorOfEveryCall(t *testing.T) {
	var none context.Context
	x := []int{1}
	if err := chorale.Run(none, 2, func(context.Context, *chorale.Comm) error { return nil }); !errors.Is(err, chorale.ErrArgument) {
		t.Errorf("run: %v", err)
	}
	if _, err := chorale.Join(none); !errors.Is(err, chorale.ErrArgument) {
		t.Errorf("join: %v", err)
	}
	onRanks(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		prepared, err := chorale.Prepare(c, func(ctx context.Context, c *chorale.Comm) error { return chorale.Barrier(ctx, c) })
		if err != nil {
			return err
		}
		defer prepared.Free()
		w, err := chorale.NewWindow[int](ctx, c, 1)
		if err != nil {
			return err
		}
		for name, call := range map[string]func() error{
			"allreduce":        func() error { return chorale.AllReduce(none, c, x, x, chorale.Sum) },
			"allgather":        func() error { return chorale.AllGatherV(none, c, make([]int, 2), x, []int{1, 1}) },
			"barrier":          func() error { return chorale.Barrier(none, c) },
			"send":             func() error { return chorale.Send(none, c, x, 0, 0) },
			"recv":             func() error { _, err := chorale.Recv(none, c, x, 0, 0); return err },
			"sendrecv recv":    func() error { _, err := chorale.SendRecv(none, c, x, 0, x, 0, 0); return err },
			"round robin recv": func() error { _, err := chorale.Recv(none, c, x, chorale.RoundRobin, 0); return err },
			"probe":            func() error { _, err := chorale.Probe[int](none, c, 0, 0); return err },
			"try probe":        func() error { _, _, err := chorale.TryProbe[int](none, c, 0, 0); return err },
			"started send":     func() error { return chorale.StartSend(none, c, x, 0, 0).Wait() },
			"started recv":     func() error { return chorale.StartRecv(none, c, x, 0, 0).Wait() },
			"start":            func() error { return chorale.StartBarrier(none, c).Wait() },
			"split":            func() error { _, err := c.Split(none, 0, 0); return err },
			"create group":     func() error { _, err := c.CreateGroup(none, []int{0, 1}, 0); return err },
			"window":           func() error { _, err := chorale.NewWindow[int](none, c, 1); return err },
			"lock":             func() error { return w.Lock(none, 0) },
			"persistent barrier": func() error {
				prepared.Start(none)
				return prepared.Wait()
			},
		} {
			err := call()
			words := strings.Fields(name)
			if !errors.Is(err, chorale.ErrArgument) || !strings.Contains(err.Error(), words[len(words)-1]+" on rank") || !strings.HasSuffix(err.Error(), "the context is nil: want one, as context.Background()") {
				return fmt.Errorf("%s: %v", name, err)
			}
		}
		if err := w.Free(ctx); err != nil {
			return err
		}
		return chorale.Barrier(ctx, c) // as before
	})
}

func TestAnUnreceivedMessageOfARankThatHasMadeNoCallSaysSo(t *testing.T) {
	job := inproc.New(2)
	if err := chorale.Bcast(t.Context(), chorale.NewComm(job.Endpoint(0), chorale.CommConfig{}), []int{1}, 0); err != nil {
		t.Fatal(err)
	}
	if err := job.Endpoint(1).CheckUnreceived(); err == nil || !strings.HasSuffix(err.Error(), "; it has made no call itself") {
		t.Errorf("got %v", err)
	}
}

func TestThePanicOfARankHasItsStackBesideItsText(t *testing.T) {
	var line string
	err := chorale.Run(t.Context(), 2, func(ctx context.Context, c *chorale.Comm) error {
		if c.Rank() == 0 {
			return chorale.Barrier(ctx, c)
		}
		var none *int
		line = lineAfter(1)
		*none = 1
		return nil
	})
	if want := `^rank 1: panic: runtime error: .* ` + line + `$`; err == nil || !regexp.MustCompile(want).MatchString(err.Error()) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	var panicked *chorale.PanicError
	if !errors.As(err, &panicked) || !strings.Contains(panicked.Stack, t.Name()) || !strings.Contains(line, panicked.Where) && panicked.Where == "" {
		t.Errorf("got %+v", panicked)
	}
}

// stderrOf returns what f writes to standard error until it returns. It closes a channel when
// there is something.
func stderrOf(t *testing.T, f func(written <-chan struct{})) string {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	saved := os.Stderr
	text, written := make(chan string), make(chan struct{})
	go func() {
		first := make([]byte, 1)
		n, _ := r.Read(first)
		close(written)
		b, _ := io.ReadAll(r)
		text <- string(first[:n]) + string(b)
	}()
	os.Stderr = w
	f(written)
	os.Stderr = saved
	w.Close()
	return <-text
}

// Rank 2 waits last, and for both others: if it did before, it and rank 1 would wait for each
// other, and be named without rank 0.
func TestRanksOfRunThatWaitForEachOtherAreNamedWithTheirLines(t *testing.T) {
	const patience = 600 * time.Millisecond
	t.Setenv("CHORALE_STALL", patience.String())
	var recv, send, barrier string
	text := stderrOf(t, func(written <-chan struct{}) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go func() {
			defer cancel()
			select {
			case <-written:
			case <-ctx.Done():
			}
			time.Sleep(patience) // within which a second report would come
		}()
		_ = chorale.Run(ctx, 3, func(ctx context.Context, c *chorale.Comm) error {
			switch c.Rank() {
			case 0:
				recv = lineAfter(1)
				_, err := chorale.Recv(ctx, c, []int{0}, 1, 3)
				return err
			case 1:
				send = lineAfter(1)
				return chorale.Send(ctx, c, make([]int, 1<<20), 2, 4)
			}
			for _, wait := range []string{"Recv of tag 3", "Send of tag 4"} {
				if _, err := explained(ctx, c, wait); err != nil {
					t.Error(err)
				}
			}
			barrier = lineAfter(1)
			return chorale.Barrier(ctx, c)
		})
	})
	want := `(?s)chorale: ranks have waited for each other for 400ms or longer, .*
  rank 0 waits for rank 1 to send a message of tag 3 ` + recv + `
  rank 1 waits for rank 2 to take a message of tag 4 ` + send + `
  rank 2 waits for rank [01] in call 0 of communicator 0, "barrier algorithm=[a-z-]+" ` + barrier + `
.*SendRecv, StartSend or StartRecv\. All ranks must make the calls of all communicators in one order\.
$`
	if !regexp.MustCompile(want).MatchString(text) {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	if n := strings.Count(text, "have waited"); n != 1 {
		t.Errorf("%d reports in %s", n, text)
	}
}
