package chorale_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chorale-go/chorale"
)

// A traceFile is a timeline as a viewer reads it.
type traceFile struct {
	OtherData struct {
		Ranks            int
		Dropped, Skipped int64
		Notes            []string
	}
	TraceEvents []traceSlice
}

type traceSlice struct {
	Ph, Name, Cat string
	Pid, Tid, ID  int
	Ts, Dur       float64
	Args          map[string]any
}

func parseTrace(t *testing.T, text []byte) (f traceFile) {
	t.Helper()
	if err := json.Unmarshal(text, &f); err != nil {
		t.Fatalf("%v\n%.500s", err, text)
	}
	return f
}

// traced runs a job and returns its timeline.
func traced(t *testing.T, n int, f chorale.Func) (traceFile, error) {
	t.Helper()
	var tr chorale.Trace
	err := chorale.RunTrace(t.Context(), n, f, &tr)
	var out bytes.Buffer
	if err := tr.Write(&out); err != nil {
		t.Fatal(err)
	}
	return parseTrace(t, out.Bytes()), err
}

// track returns what one rank has done, as "name" in the order of the beginnings.
func (f traceFile) track(rank int) (slices []traceSlice) {
	tids := map[int]bool{}
	for _, e := range f.TraceEvents {
		if name, _ := e.Args["name"].(string); e.Name == "thread_name" && strings.HasPrefix(name+" ", fmt.Sprintf("rank %d ", rank)) {
			tids[e.Tid] = true
		}
		if e.Ph == "X" && tids[e.Tid] {
			slices = append(slices, e)
		}
	}
	return slices
}

func named(all []traceSlice, category string) (names []string) {
	for _, s := range all {
		if s.Cat == category {
			names = append(names, s.Name)
		}
	}
	return names
}

func (f traceFile) flows() (n int) {
	for _, e := range f.TraceEvents {
		if e.Ph == "s" {
			n++
		}
	}
	return n
}

func TestATimelineHasEachCallWithItsLineAndSteps(t *testing.T) {
	var line int
	f, err := traced(t, 4, func(ctx context.Context, c *chorale.Comm) error {
		src, dst := make([]float64, 1000), make([]float64, 1000)
		if c.Rank() == 0 {
			line = hereLine() + 2
		}
		if err := chorale.AllReduce(ctx, c, dst, src, chorale.Sum, chorale.WithAlgorithm("recursive-doubling")); err != nil {
			return err
		}
		return chorale.Bcast(ctx, c, dst, 2, chorale.WithAlgorithm("binomial"))
	})
	if err != nil {
		t.Fatal(err)
	}
	for rank := range 4 {
		track := f.track(rank)
		if got := named(track, "call"); !slices.Equal(got, []string{"allreduce", "bcast"}) {
			t.Fatalf("rank %d: calls %v, want an allreduce and a bcast", rank, got)
		}
		if got := named(track, "step")[:2]; !slices.Equal(got, []string{"step 1", "step 2"}) {
			t.Errorf("rank %d: steps %v, want two of the allreduce", rank, got)
		}
		call := track[0]
		want := map[string]any{
			"line": fmt.Sprintf("%s:%d", thisDir("trace_test.go"), line), "algorithm": "recursive-doubling",
			"count": 1000.0, "p": 4.0, "jobRank": float64(rank), "type": "float64", "bytesSent": 16000.0,
		}
		for name, value := range want {
			if call.Args[name] != value {
				t.Errorf("rank %d: %s %v, want %v", rank, name, call.Args[name], value)
			}
		}
		at := call.Ts
		for _, s := range track[1:] {
			if s.Ts < at-0.001 {
				t.Errorf("rank %d: %s begins at %v, before %v", rank, s.Name, s.Ts, at)
			}
			if s.Cat == "step" || s.Cat == "call" {
				at = s.Ts
			}
		}
	}
	if n := f.flows(); n != 8+3 {
		t.Errorf("%d arrows, want one for each of 11 messages", n)
	}
}

// thisDir returns a file of this folder with the folder, as errors have it.
func thisDir(file string) string { return strings.TrimSuffix(thisFile, filepath.Base(thisFile)) + file }

func TestATimelineIsBoundedAndSaysSo(t *testing.T) {
	t.Setenv("CHORALE_TRACE_BUFFER", "640") // ten events
	f, err := traced(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		for range 50 {
			if err := chorale.Barrier(ctx, c); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for rank := range 2 {
		calls, steps := named(f.track(rank), "call"), named(f.track(rank), "step")
		if len(calls) != 5 || len(steps) != 5 {
			t.Errorf("rank %d: %d calls and %d steps, want the last five of each", rank, len(calls), len(steps))
		}
	}
	if f.OtherData.Dropped != 180 || len(f.OtherData.Notes) == 0 || !strings.Contains(f.OtherData.Notes[0], "180 events were dropped") {
		t.Errorf("%+v: want a note that 180 events were dropped", f.OtherData)
	}
}

func TestATimelineLeavesOutShortCallsAndCountsThem(t *testing.T) {
	const calls = 20000
	f, err := traced(t, 1, func(ctx context.Context, c *chorale.Comm) error {
		for range calls {
			if err := chorale.Barrier(ctx, c); err != nil {
				return err
			}
		}
		return nil
	})
	recorded := int64(len(named(f.track(0), "call")))
	if err != nil || recorded < 128 || recorded > calls/4 {
		t.Errorf("%d of %d calls, error %v: want 128 at least, and not most", recorded, calls, err)
	}
	if all := recorded + f.OtherData.Skipped; all > calls || all < calls-2048 {
		t.Errorf("%d calls recorded, %d left out: want %d in all, but for those after the last", recorded, f.OtherData.Skipped, calls)
	}
}

func TestATimelineHasMessagesNonblockingCallsAndSubcommunicators(t *testing.T) {
	f, err := traced(t, 3, func(ctx context.Context, c *chorale.Comm) error {
		sub, err := c.Subset(ctx, []int{2, 1})
		if err != nil {
			return err
		}
		buf := []int{1, 2}
		if sub != nil {
			if err := chorale.StartBcast(ctx, sub, buf, 0).Wait(); err != nil {
				return err
			}
		}
		switch c.Rank() {
		case 0:
			if err := chorale.Send(ctx, c, buf, 1, 7); err != nil {
				return err
			}
			return chorale.StartSend(ctx, c, buf, 1, 8).Wait()
		case 1:
			r := chorale.StartRecv(ctx, c, make([]int, 2), 0, 8)
			if _, err := chorale.Recv(ctx, c, buf, chorale.AnyRank, 7); err != nil {
				return err
			}
			return r.Wait()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for rank, want := range [][]string{{"send", "start send"}, {"start recv", "recv"}, nil} {
		var got []string
		for _, s := range f.track(rank) {
			if s.Cat == "send" || s.Cat == "receive" {
				got = append(got, s.Name)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("rank %d: %v, want %v", rank, got, want)
		}
	}
	for _, s := range f.track(1) {
		if s.Name == "bcast" && (s.Args["rank"] != 1.0 || s.Args["jobRank"] != 1.0 || s.Args["jobRankOf0"] != 2.0 || s.Args["p"] != 2.0) {
			t.Errorf("bcast %v: want rank 1 of 2, of which the first is the job's rank 2", s.Args)
		}
		if s.Name == "recv" && (s.Args["from"] != 0.0 || s.Args["tag"] != 7.0 || s.Args["bytes"] != 16.0) {
			t.Errorf("recv %v: want 16 bytes from rank 0 with tag 7", s.Args)
		}
	}
}

func TestATimelineSaysWhoWaitedForWhomAndWhatFailed(t *testing.T) {
	broken := errors.New("broken")
	f, err := traced(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		if c.Rank() == 1 {
			if _, err := explained(ctx, c, `rank 0 waits in call 0 of communicator 0, "barrier `); err != nil {
				return err
			}
			time.Sleep(20 * time.Millisecond)
		}
		if err := chorale.Barrier(ctx, c); err != nil || c.Rank() == 1 {
			return errors.Join(err, broken)
		}
		return chorale.Barrier(ctx, c)
	})
	if !errors.Is(err, broken) {
		t.Fatal(err)
	}
	waited, failed := false, false
	for _, s := range f.track(0) {
		waited = waited || s.Cat == "wait" && s.Name == "waits for rank 1" && s.Dur > 5000
		failed = failed || s.Cat == "call" && s.Args["failed"] == true
	}
	if !waited || !failed {
		t.Errorf("rank 0 waited for rank 1: %v, and its second call failed: %v; want both\n%+v", waited, failed, f.track(0))
	}
}

func TestTheEnvironmentAsksForATimeline(t *testing.T) {
	name := filepath.Join(t.TempDir(), "run.json")
	t.Setenv("CHORALE_TRACE", name)
	if err := chorale.Run(t.Context(), 3, func(ctx context.Context, c *chorale.Comm) error { return chorale.Barrier(ctx, c) }); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if f := parseTrace(t, text); f.OtherData.Ranks != 3 || len(named(f.track(2), "call")) != 1 {
		t.Errorf("%.300s: want a call of each of 3 ranks", text)
	}
}

func ExampleRunTrace() {
	var tr chorale.Trace
	err := chorale.RunTrace(context.Background(), 4, func(ctx context.Context, c *chorale.Comm) error {
		return chorale.Barrier(ctx, c)
	}, &tr)
	var file bytes.Buffer // for https://ui.perfetto.dev
	fmt.Println(err, tr.Write(&file), json.Valid(file.Bytes()))
	// Output: <nil> <nil> true
}
