//go:build unix

package launch

import (
	"os"
	"syscall"
)

const (
	hangup     = syscall.SIGHUP
	brokenPipe = int(syscall.SIGPIPE)
)

// forwarded are the signals that Notify relays. SIGPIPE is one of them only so
// that it does not end the launcher.
var forwarded = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP,
	syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGPIPE,
}

// signalGroup sends a signal to a process and to all of its group.
func signalGroup(p *os.Process, sig os.Signal) {
	syscall.Kill(-p.Pid, sig.(syscall.Signal)) // fails only if the group is empty
}

// killGroup kills the group that a process has led.
func killGroup(pid int) { syscall.Kill(-pid, syscall.SIGKILL) }

// killedBy returns the signal that ended a process, or nil.
func killedBy(state *os.ProcessState) os.Signal {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return ws.Signal()
	}
	return nil
}

// ownSession detaches a process from the launcher's terminal.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
