package launch

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A launcher that the terminal stops, as on Ctrl-Z, stops its ranks and what they
// have started. They continue with it.
func TestTheRanksStopAndContinueWithTheirLauncher(t *testing.T) {
	shell(t, "") // skips without a shell
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	launcher := exec.Command(self, "launch", "3", "sleep 1000 & echo $$; echo $!; wait")
	launcher.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // as a shell does
	stdout, err := launcher.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := launcher.Start(); err != nil {
		t.Fatal(err)
	}
	defer launcher.Process.Kill()
	processes := []string{strconv.Itoa(launcher.Process.Pid)}
	for in := bufio.NewScanner(stdout); len(processes) < 7 && in.Scan(); {
		processes = append(processes, in.Text())
	}
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
	launcher.Wait()
	if status := launcher.ProcessState.ExitCode(); status != 1 {
		t.Errorf("%v, want the error of a termination", launcher.ProcessState)
	}
}

func awaitState(t *testing.T, pid, what string, holds func(state string) bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		if holds(rest[:1]) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after 20 s, it is not so that process %s %s: it is in state %.1s", pid, what, rest)
		}
	}
}
