package chorale_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/chorale-go/chorale"
)

// A profileLine is a line of a profile, as docs/json.md shows it.
type profileLine struct {
	File, Call, Algorithm, Explain string
	Line                           int
	Calls, Bytes                   int64
	Time, Balance                  float64
	Waiting                        *float64
	Late                           *struct{ Rank int }
}

// thisFile is this file with its folder, as a profile and an error have it.
var thisFile = func() string {
	_, file, _, _ := runtime.Caller(0)
	return path.Join(path.Base(path.Dir(file)), path.Base(file))
}()

// hereLine returns the line that calls it.
func hereLine() int {
	_, _, line, _ := runtime.Caller(1)
	return line
}

// profiled runs a job and returns its profile.
func profiled(t *testing.T, n int, f chorale.Func) (lines []profileLine, text string, err error) {
	t.Helper()
	var p chorale.Profile
	err = chorale.RunProfile(t.Context(), n, f, &p)
	var out, table bytes.Buffer
	if err := errors.Join(p.WriteJSON(&out), p.WriteText(&table)); err != nil {
		t.Fatal(err)
	}
	var all struct{ Lines []profileLine }
	if err := json.Unmarshal(out.Bytes(), &all); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(table.String()) {
		if n := len([]rune(line)) - 1; n > 80 {
			t.Errorf("a line of %d characters: want 80\n%s", n, line)
		}
	}
	return all.Lines, table.String(), err
}

func lineOf(t *testing.T, lines []profileLine, call string) profileLine {
	t.Helper()
	for _, l := range lines {
		if l.Call == call {
			return l
		}
	}
	t.Fatalf("no line for %s in %+v", call, lines)
	return profileLine{}
}

func TestAProfileNamesTheCommandsThatExplainItsCalls(t *testing.T) {
	minus := chorale.Op[int32]{Combine: func(a, b int32) int32 { return a - b }}
	lines, text, err := profiled(t, 3, func(ctx context.Context, c *chorale.Comm) error {
		counts, part := []int{1, 2, 3}, make([]int64, 1+c.Rank())
		half := make([]byte, 512)
		errs := []error{
			chorale.AllReduce(ctx, c, make([]float64, 1024), make([]float64, 1024), chorale.Sum, chorale.WithAlgorithm("ring")),
			chorale.Bcast(ctx, c, half, 2),
			chorale.ReduceFunc(ctx, c, make([]int32, 2), make([]int32, 2), minus, 0),
			chorale.AllGatherV(ctx, c, make([]int64, 6), part, counts),
			chorale.Barrier(ctx, c),
		}
		return errors.Join(errs...)
	})
	if err != nil {
		t.Fatal(err)
	}
	for call, want := range map[string]string{
		"allreduce": "chorale explain allreduce -n 3 -m 8K --transport inproc --algorithm ring",
		"bcast":     "chorale explain bcast -n 3 -m 512 --transport inproc --root 2",
		"reduce":    "chorale explain reduce -n 3 -m 8 --transport inproc --ordered",
		"allgather": "chorale explain allgather -n 3 -m 16 --transport inproc --uneven",
		"barrier":   "chorale explain barrier -n 3 --transport inproc",
	} {
		if got := lineOf(t, lines, call).Explain; got != want {
			t.Errorf("%s: got %q, want %q", call, got, want)
		}
	}
	if !strings.Contains(text, "\nwhat the longest calls should take, and why:\n  chorale explain ") {
		t.Errorf("no commands in\n%s", text)
	}
}

func TestAProfileSaysWhoWaitedForWhom(t *testing.T) {
	const late = 50 * time.Millisecond
	l, text := profileOfWaiting(t, late)
	// On a busy machine, ranks also lose time that is no waiting: little beside a longer wait.
	for longer := 8 * late; longer < 8*time.Second && (*l.Waiting < 0.5*l.Time || l.Balance < 1.2); longer *= 8 {
		l, text = profileOfWaiting(t, longer)
	}
	if l.File != thisFile || l.Line == 0 || l.Calls != 2 || l.Bytes != 16 || l.Algorithm == "" {
		t.Errorf("line %+v: want two calls of 8 bytes in this file", l)
	}
	if *l.Waiting < 0.5*l.Time || *l.Waiting < late.Seconds()/4 {
		t.Errorf("line %+v: want waiting to be most of the time, and %v or more", l, late/2)
	}
	if l.Late == nil || l.Late.Rank != 1 || !strings.Contains(text, " of the waiting was for rank 1\n") {
		t.Errorf("the profile does not say that rank 1 came late:\n%s", text)
	}
	if l.Balance < 1.2 {
		t.Errorf("balance %v: want more, for one rank alone has waited", l.Balance)
	}
	if !strings.Contains(text, "_test.go:") {
		t.Errorf("the table lacks the line:\n%s", text)
	}
}

// profileOfWaiting has rank 0 wait for rank 1 in an AllReduce, for some time or longer. It
// returns the line of this call, and the profile as a text.
func profileOfWaiting(t *testing.T, late time.Duration) (l profileLine, text string) {
	t.Helper()
	lines, text, err := profiled(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		if c.Rank() == 1 {
			if _, err := explained(ctx, c, `rank 0 waits in call 0 of communicator 0, "allreduce `); err != nil {
				return err
			}
			time.Sleep(late)
		}
		src, dst := []int{1}, []int{0}
		return chorale.AllReduce(ctx, c, dst, src, chorale.Sum)
	})
	if err != nil {
		t.Fatal(err)
	}
	if l = lineOf(t, lines, "allreduce"); l.Waiting == nil {
		t.Fatalf("line %+v: want that its waiting is known", l)
	}
	return l, text
}

func TestAProfileCountsAllCallsAndTimesSome(t *testing.T) {
	const calls = 5000
	lines, text, err := profiled(t, 3, func(ctx context.Context, c *chorale.Comm) error {
		buf := []int{1, 2}
		for range calls {
			if err := chorale.Bcast(ctx, c, buf, 0); err != nil {
				return err
			}
		}
		return chorale.Barrier(ctx, c) // whose first call is not among those that are timed by their number
	})
	if err != nil {
		t.Fatal(err)
	}
	if l := lineOf(t, lines, "bcast"); l.Calls != 3*calls || l.Bytes != 2*calls*16 {
		t.Errorf("bcast %+v: want %d calls, which send %d bytes", l, 3*calls, 2*calls*16)
	}
	if l := lineOf(t, lines, "barrier"); l.Calls != 3 {
		t.Errorf("barrier %+v: want 3 calls", l)
	}
	if !strings.Contains(text, "waiting is from ") {
		t.Errorf("the table does not say that some calls were timed:\n%s", text)
	}
}

func TestAProfileHasNonblockingCallsAndTaggedMessages(t *testing.T) {
	lines, _, err := profiled(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		src, dst := []int{1, 2}, []int{0, 0}
		r := chorale.StartAllGather(ctx, c, make([]int, 4), src)
		if err := r.Wait(); err != nil {
			return err
		}
		if c.Rank() == 0 {
			return chorale.Send(ctx, c, src, 1, 3)
		}
		_, err := chorale.Recv(ctx, c, dst, 0, 3)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range []string{"allgather", "send", "recv"} {
		if l := lineOf(t, lines, call); l.File != thisFile {
			t.Errorf("%s %+v: want a line of this file", call, l)
		}
	}
	if l := lineOf(t, lines, "send"); l.Calls != 1 || l.Bytes != 16 || l.Waiting != nil {
		t.Errorf("send %+v: want one of 16 bytes, and no waiting", l)
	}
}

func TestAProfileOfOneRankAndOfNoCallsAndOfAFailedJob(t *testing.T) {
	lines, _, err := profiled(t, 1, func(ctx context.Context, c *chorale.Comm) error {
		return chorale.AllReduce(ctx, c, []int{}, []int{}, chorale.Sum)
	})
	if l := lineOf(t, lines, "allreduce"); err != nil || l.Calls != 1 || l.Bytes != 0 {
		t.Errorf("one rank: %+v, error %v", l, err)
	}
	_, text, err := profiled(t, 7, func(ctx context.Context, c *chorale.Comm) error { return nil })
	if err != nil || !strings.Contains(text, "no calls") {
		t.Errorf("no calls: %q, error %v", text, err)
	}
	broken := errors.New("broken")
	lines, _, err = profiled(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		if err := chorale.Barrier(ctx, c); err != nil || c.Rank() == 0 {
			return errors.Join(err, broken)
		}
		return chorale.Barrier(ctx, c)
	})
	if l := lineOf(t, lines, "barrier"); !errors.Is(err, broken) || l.Calls != 2 {
		t.Errorf("a failed job: %+v, error %v: want the calls that have succeeded", l, err)
	}
}

func TestAProfileTellsApartSoManyPlaces(t *testing.T) {
	// Every type has a function of its own, but one line: places are lines.
	lines, _, err := profiled(t, 1, func(ctx context.Context, c *chorale.Comm) error {
		for i := range 600 {
			if err := chorale.Bcast(ctx, c, make([]int, i), 0); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || len(lines) != 1 || lines[0].Calls != 600 {
		t.Errorf("%+v, error %v: want one line with 600 calls", lines, err)
	}
}

func TestAProfileSumsTheLinesBeyondItsRoom(t *testing.T) {
	const beyond = 40
	p := chorale.RecordPlaces(TestAProfileSumsTheLinesBeyondItsRoom, chorale.MaxRows+beyond)
	var out, table bytes.Buffer
	if err := errors.Join(p.WriteJSON(&out), p.WriteText(&table)); err != nil {
		t.Fatal(err)
	}
	var all struct{ Lines []profileLine }
	if err := json.Unmarshal(out.Bytes(), &all); err != nil {
		t.Fatal(err)
	}
	calls, others := int64(0), int64(0)
	for _, l := range all.Lines {
		calls += l.Calls
		if l.File == "" {
			others += l.Calls
		}
	}
	if len(all.Lines) != chorale.MaxRows+1 || calls != chorale.MaxRows+beyond || others != beyond {
		t.Errorf("%d lines with %d calls, of which %d are others: want %d, %d and %d",
			len(all.Lines), calls, others, chorale.MaxRows+1, chorale.MaxRows+beyond, beyond)
	}
	if !strings.Contains(table.String(), "\nothers ") {
		t.Errorf("no others in\n%s", &table)
	}
}

func TestAProfileHasTheLineThatStartsACall(t *testing.T) {
	var started, prepared int
	all := func(ctx context.Context, c *chorale.Comm) error {
		return chorale.AllReduce(ctx, c, []int{0}, []int{1}, chorale.Sum)
	}
	lines, _, err := profiled(t, 1, func(ctx context.Context, c *chorale.Comm) error {
		p, err := chorale.Prepare(c, func(ctx context.Context, c *chorale.Comm) error { return chorale.Barrier(ctx, c) })
		if err != nil {
			return err
		}
		defer p.Free()
		for range 3 {
			started = hereLine() + 1
			r := chorale.Start(ctx, c, all)
			prepared = hereLine() + 1
			p.Start(ctx)
			if err := errors.Join(r.Wait(), p.Wait()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for call, want := range map[string]int{"allreduce": started, "barrier": prepared} {
		if l := lineOf(t, lines, call); l.File != thisFile || l.Line != want || l.Calls != 3 {
			t.Errorf("%s %+v: want three calls in line %d", call, l, want)
		}
	}
}

func TestAProfileCountsAllNonblockingCallsAndKnowsTheLineOfEachCollective(t *testing.T) {
	const calls = 500 // so that most are not timed
	var rare int
	lines, _, err := profiled(t, 1, func(ctx context.Context, c *chorale.Comm) error {
		src, dst := []int{1}, []int{0}
		for range calls {
			if err := chorale.StartAllReduce(ctx, c, dst, src, chorale.Sum).Wait(); err != nil {
				return err
			}
		}
		rare = hereLine() + 1
		return chorale.StartBcast(ctx, c, src, 0).Wait()
	})
	if err != nil {
		t.Fatal(err)
	}
	if l := lineOf(t, lines, "allreduce"); l.File != thisFile || l.Calls != calls {
		t.Errorf("%+v: want %d calls in one line of this file", l, calls)
	}
	if l := lineOf(t, lines, "bcast"); l.Line != rare || l.Calls != 1 {
		t.Errorf("%+v: want one call in line %d", l, rare)
	}
}

func TestAProfileHasTheBytesOfReceivedMessages(t *testing.T) {
	lines, _, err := profiled(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		buf, short := make([]int, 4), []int{1, 2}
		if c.Rank() == 0 {
			return errors.Join(chorale.Send(ctx, c, short, 1, 0), chorale.Send(ctx, c, short, 1, 1))
		}
		if _, err := chorale.Recv(ctx, c, buf, 0, 0); err != nil {
			return err
		}
		return chorale.StartRecv(ctx, c, buf, 0, 1).Wait()
	})
	if err != nil {
		t.Fatal(err)
	}
	if l := lineOf(t, lines, "recv"); l.Bytes != 16 {
		t.Errorf("%+v: want the 16 bytes of the message", l)
	}
	started := int64(0)
	for _, l := range lines {
		if l.Call == "start recv" || l.Call == "wait" {
			started += l.Bytes
		}
	}
	if started != 16 {
		t.Errorf("%d bytes of a receive that was started: want 16\n%+v", started, lines)
	}
}

func TestAProfileNamesALineAsAnErrorDoes(t *testing.T) {
	var want string
	lines, text, err := profiled(t, 1, func(ctx context.Context, c *chorale.Comm) error {
		var failed error
		for _, root := range []int{0, 1} {
			failed = chorale.Bcast(ctx, c, []int{1}, root)
		}
		return failed
	})
	if l := lineOf(t, lines, "bcast"); err == nil || l.Calls != 1 {
		t.Fatalf("%+v, error %v: want one call, and an error", l, err)
	} else {
		want = fmt.Sprintf("%s:%d", l.File, l.Line)
	}
	if !strings.HasPrefix(want, thisFile+":") || !strings.Contains(text, want) {
		t.Errorf("line %s in\n%s", want, text)
	}
}

func TestAProfileCountsAllMessagesAndTimesSome(t *testing.T) {
	const messages = 3000
	lines, _, err := profiled(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		buf := []int{1, 2}
		for i := range messages {
			if c.Rank() == 0 {
				if err := chorale.Send(ctx, c, buf, 1, i); err != nil {
					return err
				}
			} else if _, err := chorale.Recv(ctx, c, buf, 0, i); err != nil {
				return err
			}
		}
		if c.Rank() == 0 { // of another size
			return chorale.Send(ctx, c, buf[:1], 1, 0)
		}
		_, err := chorale.Recv(ctx, c, buf[:1], 0, 0)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	calls, bytes := int64(0), int64(0)
	for _, l := range lines {
		if l.Call == "send" {
			calls, bytes = calls+l.Calls, bytes+l.Bytes
		}
	}
	if calls != messages+1 || bytes != 16*messages+8 {
		t.Errorf("%d sends of %d bytes: want %d of %d\n%+v", calls, bytes, messages+1, 16*messages+8, lines)
	}
}

func ExampleRunProfile() {
	var p chorale.Profile
	err := chorale.RunProfile(context.Background(), 4, func(ctx context.Context, c *chorale.Comm) error {
		return chorale.Barrier(ctx, c)
	}, &p)
	var table strings.Builder
	fmt.Println(err, p.WriteText(&table), strings.Contains(table.String(), "barrier"))
	// Output: <nil> <nil> true
}
