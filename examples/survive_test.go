package examples_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestTrainingGoesOnWhenRanksAreKilled runs the example as its comment says. Its result is
// that of one rank; the example checks it.
func TestTrainingGoesOnWhenRanksAreKilled(t *testing.T) {
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", bin+string(filepath.Separator), "../cmd/chorale", "./survive").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	transports := []string{"auto", "tcp"}
	if runtime.GOOS == "linux" {
		transports = append(transports, "shm")
	}
	for _, transport := range transports {
		for _, r := range []struct {
			flags string
			die   string
			left  int
		}{
			{"--on-failure continue", "3", 4},
			{"--on-failure continue", "0,3", 3},
			{"--on-failure continue", "0,1,2,4", 1},
			{"--respawn 1", "2", 5},
			{"--respawn 2", "0,4", 5},
		} {
			t.Run(fmt.Sprintf("%s %s -die %s", transport, r.flags, r.die), func(t *testing.T) {
				args := append([]string{"run", "-n", "5", "--no-labels", "--transport", transport}, strings.Fields(r.flags)...)
				cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "chorale"+exe()), append(args, filepath.Join(bin, "survive"+exe()), "-die", r.die)...)
				var stderr strings.Builder
				cmd.Stderr = &stderr
				out, err := cmd.Output()
				if want := fmt.Sprintf("%d ranks after 400 steps: y = 1.9984x + 1.0000\n", r.left); err != nil || string(out) != want {
					t.Errorf("%v: got %q, want %q\n%s", err, out, want, &stderr)
				}
			})
		}
	}
}
