package launch

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// A launcher that the terminal stops, as on Ctrl-Z, stops its ranks on other hosts, too.
func TestRanksElsewhereStopAndContinueWithTheirLauncher(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), "script") // starts no process: a shell that waits for one to begin is not seen to stop
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho $$\nwhile :; do :; done\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	launcher := exec.Command(self, "remote", "a:2,b", self+" ssh "+t.TempDir(), script)
	launcher.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // as a shell does
	var stdout lockedBuilder
	launcher.Stdout = &stdout
	if err := launcher.Start(); err != nil {
		t.Fatal(err)
	}
	defer launcher.Process.Kill()
	pids := regexp.MustCompile(`(?m)^\d+\n`)
	await(t, "all ranks run", func() bool { return len(pids.FindAllString(stdout.String(), -1)) == 3 })
	// The launcher stops after its ranks: a signal that continues it before would be lost.
	processes := append(strings.Fields(stdout.String()), strconv.Itoa(launcher.Process.Pid))
	for range 2 {
		launcher.Process.Signal(syscall.SIGTSTP)
		for _, pid := range processes {
			awaitState(t, pid, "is stopped", func(state string) bool { return state == "T" })
		}
		launcher.Process.Signal(syscall.SIGCONT)
		for _, pid := range processes {
			awaitState(t, pid, "runs", func(state string) bool { return state != "T" })
		}
	}
	launcher.Process.Signal(syscall.SIGTERM)
	if launcher.Wait(); launcher.ProcessState.Success() {
		t.Error("the launcher ends with success")
	}
}
