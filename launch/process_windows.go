package launch

import (
	"os"
	"syscall"
)

const brokenPipe = int(syscall.SIGPIPE)

// forwarded are the signals that Notify relays.
var forwarded = []os.Signal{syscall.SIGINT, syscall.SIGTERM}

// brokenPipes is empty: Windows has no such signal.
var brokenPipes []os.Signal

// wireSignals are the signals that a launcher forwards to other hosts, by the names that
// both know.
var wireSignals = map[string]syscall.Signal{
	"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "QUIT": syscall.SIGQUIT, "HUP": syscall.SIGHUP, "KILL": syscall.SIGKILL,
}

func executable() (string, error) { return os.Executable() }

func ownGroup() *syscall.SysProcAttr { return nil }

func ownSession() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// notifyStop does nothing: Windows does not stop processes.
func notifyStop(chan<- os.Signal) {}

func (s *supervisor) stop() {}

// signalGroup kills the process, because Windows has no other signal. An interrupt
// is not forwarded: the console sends it to the ranks itself.
func signalGroup(p *os.Process, sig os.Signal) {
	if sig != os.Interrupt {
		p.Kill()
	}
}

// killGroup kills a process.
func killGroup(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		p.Kill()
		p.Release()
	}
}

// killedBy returns nil: no signal ends a process on Windows.
func killedBy(*os.ProcessState) os.Signal { return nil }
