//go:build unix

package launch

import (
	"bufio"
	"context"
	"errors"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestABlockedOutputDoesNotDelayTheEndOfTheContextForEver(t *testing.T) {
	// Nobody reads standard output, whose pipe is full. Standard error is another file.
	var pipes [4]*os.File
	for i := 0; i < len(pipes); i += 2 {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		pipes[i], pipes[i+1] = r, w
		defer r.Close()
		defer w.Close()
	}
	stdout, stderr, ranks := pipes[1], pipes[3], bufio.NewScanner(pipes[2])
	stdout.SetWriteDeadline(time.Now().Add(time.Second))
	if n, err := stdout.Write(make([]byte, 4<<20)); err == nil {
		t.Fatalf("a pipe takes %d bytes", n)
	}
	stdout.SetWriteDeadline(time.Time{})

	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cfg := shell(t, "trap '' TERM; echo $$ >&2; while :; do echo out; sleep 0.01; done")
	cfg.Stdout, cfg.Stderr, cfg.Unlabeled, cfg.Grace = stdout, stderr, true, 100*time.Millisecond
	end := make(chan error, 1)
	go func() { end <- Run(ctx, cfg) }()
	var pids []int
	for range cfg.Size {
		ranks.Scan()
		pid, err := strconv.Atoi(ranks.Text())
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	cancel(why)
	select {
	case err := <-end:
		if !errors.Is(err, why) {
			t.Errorf("%v, want %v", err, why)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("Run has not returned 20 s after the end of its context")
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, 0); err == nil {
			t.Errorf("process %d is still there", pid)
		}
	}
	// What is left is one blocked write.
	var left []string
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		left = slices.DeleteFunc(strings.Split(string(stacks), "\n\n"), func(stack string) bool {
			return !strings.Contains(stack, "/launch.(*") && !strings.Contains(stack, "/launch/internal/")
		})
		if len(left) == 1 && strings.Contains(left[0], "(*Sink).put") {
			return
		}
	}
	t.Errorf("%d goroutines are left, want a blocked write:\n%s", len(left), strings.Join(left, "\n\n"))
}
