package launch

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestAGuardRemovesProcessesAndFiles(t *testing.T) {
	for name, args := range map[string][]string{
		"by a guard process":  {"guard"},
		"without one":         nil,
		"after it was killed": {"guard"},
	} {
		t.Run(name, func(t *testing.T) {
			left := startIdle(t)
			spared := startIdle(t)
			path := filepath.Join(t.TempDir(), "build")
			g, err := startGuard(args)
			if err != nil {
				t.Fatal(err)
			}
			g.send(guardMessage{Group: left.Process.Pid})
			g.send(guardMessage{Group: spared.Process.Pid})
			g.send(guardMessage{Ended: spared.Process.Pid})
			g.send(guardMessage{Path: path})
			if err := os.MkdirAll(filepath.Join(path, "deep"), 0o777); err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(name, "after") {
				g.cmd.Process.Kill()
			}
			g.close()
			if _, err := os.Stat(path); !os.IsNotExist(err) {
				t.Errorf("%s is still there", path)
			}
			if left.Wait(); left.ProcessState.Success() {
				t.Error("the group has ended with success, want it killed")
			}
			if err := spared.Process.Kill(); err != nil {
				t.Errorf("a group that had ended before was killed: %v", err)
			}
			spared.Wait()
		})
	}
}

// startIdle starts a process in a group of its own that never ends by itself.
func startIdle(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], "sleep")
	cmd.SysProcAttr = ownGroup()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}
