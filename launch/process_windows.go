package launch

import (
	"os"
	"syscall"
)

const (
	hangup     = syscall.SIGHUP
	brokenPipe = int(syscall.SIGPIPE)
)

// forwarded are the signals that Notify relays.
var forwarded = []os.Signal{syscall.SIGINT, syscall.SIGTERM}

func executable() (string, error) { return os.Executable() }

func ownGroup() *syscall.SysProcAttr { return nil }

func ownSession() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// signalGroup ends a process: it is all that can be asked of one. What the
// console tells the launcher, it tells the ranks itself.
func signalGroup(p *os.Process, sig os.Signal) {
	if sig != os.Interrupt {
		p.Kill()
	}
}

// killGroup ends a process.
func killGroup(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		p.Kill()
		p.Release()
	}
}

// killedBy returns nil: no process is ended by a signal.
func killedBy(*os.ProcessState) os.Signal { return nil }
