package launch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// resident returns how many bytes of this process's memory are resident.
func resident(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("no /proc says how much memory a process takes: ", err)
	}
	var kib int
	_, line, _ := strings.Cut(string(status), "VmRSS:")
	if _, err := fmt.Sscan(line, &kib); err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// The launcher is this process. Rank 0 prints one line, which is binary and has no end.
func TestTheLauncherDoesNotGrowWithWhatARankPrints(t *testing.T) {
	const most = 32 << 20
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	cfg := shell(t, `test $CHORALE_RANK != 0 || head -c 1073741824 /dev/zero`)
	cfg.Stdout = null
	before := resident(t)
	end := make(chan error, 1)
	go func() { end <- Run(t.Context(), cfg) }()
	for grown := 0; ; {
		select {
		case err := <-end:
			if err != nil {
				t.Error(err)
			}
			t.Logf("the launcher has grown by %d KiB at most", grown>>10)
			return
		case <-time.After(20 * time.Millisecond):
			if grown = max(grown, resident(t)-before); grown > most {
				t.Fatalf("the launcher has grown by %d bytes", grown)
			}
		}
	}
}

// Rank 0 prints to a pipe that nobody reads until another rank is done with what it has
// to do, which ends with a line on standard error.
func TestARankWhoseOutputIsNotReadWaitsAlone(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	errR, errW, err := os.Pipe() // a file of its own: otherwise the two outputs take turns
	if err != nil {
		t.Fatal(err)
	}
	defer errR.Close()
	cfg := shell(t, `if test $CHORALE_RANK = 0; then head -c 4000000 /dev/zero; echo printed >&2; else sleep 0.5; echo computed >&2; fi`)
	cfg.Stdout, cfg.Stderr, cfg.Unlabeled = w, errW, true
	end := make(chan error, 1)
	go func() {
		err := Run(t.Context(), cfg)
		end <- errors.Join(err, errW.Close(), w.Close())
	}()
	said := make([]byte, len("computed\n"))
	if _, err := io.ReadFull(errR, said); err != nil || string(said) != "computed\n" {
		t.Fatalf("%q comes first, %v: want the rank that computes", said, err)
	}
	printed := make(chan int)
	go func() {
		out, _ := io.ReadAll(r)
		printed <- len(out)
	}()
	rest, _ := io.ReadAll(errR)
	if err := <-end; err != nil || !bytes.Contains(rest, []byte("printed")) {
		t.Errorf("the rank that prints says %q, and the job ends with %v", rest, err)
	}
	if n := <-printed; n != 4_000_000 {
		t.Errorf("%d bytes are printed", n)
	}
}
