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

	"golang.org/x/sys/unix"

	"github.com/chorale-go/chorale/internal/testenv"
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

// A shell continues a stopped launcher in the background of its terminal. It and its
// ranks then go on, although the launcher had begun to read from the terminal.
func TestALauncherThatReadsFromATerminalGoesOnInItsBackground(t *testing.T) {
	shell(t, "") // skips without a shell
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	master, slave := openTerminal(t)
	session := exec.Command("sh", "-i")
	session.Env = append(os.Environ(), "PS1=$ ")
	session.Stdin, session.Stdout, session.Stderr = slave, slave, slave
	session.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := session.Start(); err != nil {
		t.Fatal(err)
	}
	defer session.Wait()
	defer session.Process.Kill()
	slave.Close()

	master.SetDeadline(time.Now().Add(20 * time.Second))
	screen := bufio.NewScanner(master)
	await := func(what string, times int) {
		t.Helper()
		for ; times > 0; times-- {
			for {
				if !screen.Scan() {
					t.Fatalf("20 s without %q", what)
				}
				if strings.Contains(screen.Text(), what) {
					break
				}
			}
		}
	}
	master.WriteString(self + " launch 1 'while :; do echo ti''ck; sleep 0.01; done'\n")
	await("tick", 20)
	master.WriteString("\x1a")
	await("Stopped", 1)
	master.WriteString("bg; echo go''es on\n")
	await("goes on", 1)
	await("tick", 20)
	master.WriteString("kill %1; wait %1; echo status $?\n")
	await("status 1", 1)
}

// openTerminal returns the two ends of a new pseudoterminal.
func openTerminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		testenv.Skip(t, "no pseudoterminal: %v", err)
	}
	master = os.NewFile(uintptr(fd), "ptmx")
	t.Cleanup(func() { master.Close() })
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		testenv.Skip(t, "no pseudoterminal: %v", err)
	}
	return master, slave
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
