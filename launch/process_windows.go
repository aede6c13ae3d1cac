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

// killedBy returns nil: no signal ends a process on Windows.
func killedBy(*os.ProcessState) os.Signal { return nil }
