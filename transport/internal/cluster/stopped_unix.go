//go:build unix

package cluster

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"
)

// stopTime is longer than any limit that a transport has for first contact.
const stopTime = 12 * time.Second

// RunStopped tests that a rank whose process is stopped before first contact is waited
// for.
func RunStopped(t *testing.T, start func(t testing.TB, n int) *Cluster) {
	if testing.Short() {
		t.Skip("takes as long as the rank is stopped")
	}
	c := start(t, 2)
	if err := Stop(c.Process(1)); err != nil {
		t.Fatal(err)
	}
	defer c.Process(1).Signal(syscall.SIGCONT) // if the test fails: else it would not end
	c.StartOthers("swap", 8, 1)                // the stopped rank finds it later
	swapped := make(chan error, 1)
	go func() { swapped <- c.Run("swap", 8, 1) }()
	select {
	case err := <-swapped:
		t.Fatalf("rank 0 has not waited: %v", err)
	case <-time.After(stopTime):
	}
	if err := c.Process(1).Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := <-swapped; err != nil {
		t.Error(err)
	}
	if got := c.Reply(1); got != "done" {
		t.Errorf("rank 1 says %q", got)
	}
}

// Stop stops a process of this one. On a busy machine its threads run for a while after the
// signal was sent: Stop waits until none does.
func Stop(p *os.Process) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for {
		var status syscall.WaitStatus
		switch _, err := syscall.Wait4(p.Pid, &status, syscall.WUNTRACED, nil); {
		case err == syscall.EINTR:
		case err != nil:
			return err
		case !status.Stopped():
			return fmt.Errorf("the process is to be stopped, and its status is %#x", status)
		default:
			return nil
		}
	}
}
