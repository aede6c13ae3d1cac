package launch

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestAGuardRemovesWhatIsLeft(t *testing.T) {
	for name, args := range map[string][]string{
		"by a guard process":  {"guard"},
		"without one":         nil,
		"after it was killed": {"guard"},
	} {
		t.Run(name, func(t *testing.T) {
			left := sleeping(t)
			spared := sleeping(t)
			path := filepath.Join(t.TempDir(), "build")
			g, err := startGuard(args)
			if err != nil {
				t.Fatal(err)
			}
			g.note(note{Group: left.Process.Pid})
			g.note(note{Group: spared.Process.Pid})
			g.note(note{Ended: spared.Process.Pid})
			g.note(note{Path: path})
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
				t.Error("the group has ended well, want it killed")
			}
			if err := spared.Process.Kill(); err != nil {
				t.Errorf("a group that had ended before was killed: %v", err)
			}
			spared.Wait()
		})
	}
}

// sleeping starts a process that has a group of its own.
func sleeping(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], "sleep")
	cmd.SysProcAttr = ownGroup()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}
