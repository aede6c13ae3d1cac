//go:build unix

package launch

import (
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/chorale-go/chorale/internal/proof"
)

// limitDescriptors lowers the limit of this process, and returns what sets it back.
func limitDescriptors(t *testing.T, to int) (restore func()) {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	lower := limit
	lower.Cur = min(limit.Cur, uint64(to))
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &lower); err != nil {
		t.Fatal(err)
	}
	restore = func() { syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit) }
	t.Cleanup(restore)
	return restore
}

func TestAJobThatTakesTooManyDescriptorsDoesNotStart(t *testing.T) {
	limitDescriptors(t, openDescriptors()+2*rankDescriptors+spareDescriptors)
	r := run(t, 14, "ring", "5")
	if r.end == nil || !strings.Contains(r.end.Error(), "14 ranks take ") || !strings.Contains(r.end.Error(), "raise it with ulimit -n ") {
		t.Errorf("%v\n%s", r.end, &r.err)
	}
}

func TestStrangersGetNoMoreDescriptorsThanAreLeft(t *testing.T) {
	job := openDescriptors() + 2*rankDescriptors + spareDescriptors
	for _, test := range []struct{ limit, want int }{{job + 1, 1}, {job + 10, 10}, {job + 10*proof.UnprovenMax, proof.UnprovenMax}} {
		restore := limitDescriptors(t, test.limit)
		if got, err := checkDescriptors(2); got != test.want || err != nil {
			t.Errorf("of %d descriptors, %d are for strangers, %v; want %d", test.limit, got, err, test.want)
		}
		restore()
	}
}

// What a job takes is enough for it.
func TestAJobTakesNoMoreDescriptorsThanItSays(t *testing.T) {
	const ranks = 12
	for _, transport := range []string{"tcp", "auto"} {
		cfg := config(t, ranks, "ring", "5")
		cfg.Transport = transport
		limited := openDescriptors() + rankDescriptors*ranks + spareDescriptors + 7 // of the job, before it counts
		restore := limitDescriptors(t, limited)
		if err := Run(t.Context(), cfg); err != nil {
			t.Errorf("%s: %v", transport, err)
		}
		restore()
	}
}

// Rank 0 joins when no descriptor is free any more.
func TestALauncherThatCannotAcceptEndsItsJob(t *testing.T) {
	cfg := config(t, 1, "closed")
	stdin, start := io.Pipe()
	cfg.Transport, cfg.Stdin, cfg.Verbose = "tcp", stdin, true
	var stderr lockedBuilder
	cfg.Stderr = writerFunc(func(p []byte) (int, error) {
		if strings.Contains(string(p), "rank 0: process") {
			limitDescriptors(t, 1)
			start.Close()
		}
		return stderr.Write(p)
	})
	err := Run(t.Context(), cfg)
	if err == nil || !strings.Contains(err.Error(), "the launcher cannot accept the ranks' connections: ") || !strings.Contains(err.Error(), "too many open files") {
		t.Errorf("%v\n%s", err, &stderr)
	}
}
