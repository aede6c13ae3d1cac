//go:build unix

package cluster

import (
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
	if err := c.Process(1).Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	c.StartOthers("swap", 8, 1) // the stopped rank finds it later
	swapped := make(chan error, 1)
	go func() { swapped <- c.Run("swap", 8, 1) }()
	select {
	case err := <-swapped:
		t.Errorf("rank 0 has not waited: %v", err)
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
