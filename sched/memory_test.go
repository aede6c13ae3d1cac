package sched_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/sched"
)

// allocated returns the bytes that a function allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestAScheduleThatTakesTooMuchMemoryIsRefusedBeforeItIsAllocated(t *testing.T) {
	// Rank 0 combines the In of every second rank, which is a list of many operands,
	// and sends it to all ranks many times.
	operands := func(p, copies int) string {
		var b strings.Builder
		fmt.Fprintf(&b, "schedule allreduce operands\nranks %d\nscratch %d\ncommutative\nrank 0\nstep\ncopy in 0..1 to out 0\n", p, copies)
		for rank := 2; rank < p; rank += 2 {
			fmt.Fprintf(&b, "recv out 0..1 from %d combine left\n", rank)
		}
		all := ""
		for rank := 1; rank < p; rank++ {
			all += fmt.Sprint(" ", rank)
		}
		for range copies {
			fmt.Fprintf(&b, "step\nsend out 0..1 to%s\n", all)
		}
		for rank := 1; rank < p; rank++ {
			fmt.Fprintf(&b, "rank %d\n", rank)
			if rank%2 == 0 {
				fmt.Fprintf(&b, "step\nsend in 0..1 to 0\n")
			}
			for i := range copies {
				fmt.Fprintf(&b, "step\nrecv scratch %d..%d from 0\n", i, i+1)
			}
		}
		return b.String()
	}
	const limit = 64 << 20
	for _, test := range []struct{ name, text, want string }{
		{"blocks of many ranks", "schedule alltoall x\nranks 60000\nblocks 60000", "too large: to check this schedule of 60000 ranks would take about 161 GiB, and the limit is 0.0625 GiB: want fewer ranks, blocks or messages, or a higher limit"},
		{"scratch", "schedule bcast x\nranks 2\nscratch 1073741824", "about 96 GiB"},
		{"the same in JSON", `{"collective":"alltoall","p":60000,"blocks":60000}`, "about 161 GiB"},
		{"a barrier", "schedule barrier x\nranks 1048576", "about 256 GiB"},
		{"ranks", "schedule bcast x\nranks 16777216", "GiB"},
		{"operands", operands(1000, 40), "would take more memory than estimated, and the limit is 0.0625 GiB"},
	} {
		s, err := sched.Parse([]byte(test.text))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		bytes := allocated(func() { err = s.CheckWithin(limit) })
		var large *sched.TooLargeError
		if !errors.As(err, &large) || !errors.Is(err, sched.ErrTooLarge) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
		if bytes > 2*limit {
			t.Errorf("%s: allocated %d MiB, and the limit is %d", test.name, bytes>>20, limit>>20)
		}
	}
}

func TestAScheduleLargerThanItsSampleIsRefusedWhenThatIsKnown(t *testing.T) {
	step := sched.Step{Copies: []sched.Copy{{Src: sched.In, Blocks: sched.Range{Lo: 0, Hi: 1}, Dst: sched.Out}}}
	busy := make(sched.Program, 1<<16)
	for i := range busy {
		busy[i] = step
	}
	s := &sched.Schedule{Collective: sched.Shift, P: 1024, Blocks: 1, Make: func(_ *sched.Builder, rank int) sched.Program {
		if rank == 17 { // which is not among those that are counted
			return busy
		}
		return nil
	}}
	_, err := s.TimelineWithin(1 << 20)
	if !errors.Is(err, sched.ErrTooLarge) || !strings.Contains(err.Error(), "more memory than estimated") {
		t.Error(err)
	}
}

func TestManyRanksWithLittleToDoAreChecked(t *testing.T) {
	// A chain of a million ranks, of which three do something.
	s, err := sched.Parse([]byte("schedule shift x\nranks 1048576\nroot 0\nrank 0\nstep\ncopy in 0..1 to out 0\n"))
	if err != nil {
		t.Fatal(err)
	}
	var fault *sched.Fault
	if err := s.Check(); !errors.As(err, &fault) || fault.Rank != 1 {
		t.Errorf("%v, want rank 1 to hold nothing", err)
	}
}

// A document cannot make its reader allocate much more than itself.
func TestAShortDocumentMakesNoLongPrograms(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"collective":"shift","p":1000,"blocks":1,"steps":[{"copies":[`)
	for rank := range 1000 {
		if rank > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"rank":%d,"src":"in","blocks":[0,1],"dst":"out","at":0,"combine":"","step":60000}`, rank)
	}
	b.WriteString(`],"messages":[]}]}`)
	var err error
	bytes := allocated(func() { _, err = sched.Parse([]byte(b.String())) })
	if err == nil || bytes > 16<<20 {
		t.Errorf("%v, after %d MiB", err, bytes>>20)
	}
}
