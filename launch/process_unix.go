//go:build unix

package launch

import (
	"os"
	"os/signal"
	"syscall"
)

const brokenPipe = int(syscall.SIGPIPE)

// forwarded are the signals that Notify relays. SIGPIPE is one of them only so
// that it does not end the launcher.
var forwarded = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP,
	syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGPIPE,
}

// brokenPipes are the signals of a write to a closed pipe.
var brokenPipes = []os.Signal{syscall.SIGPIPE}

// wireSignals are the signals that a launcher forwards to other hosts, whose numbers may
// differ, by the names that both know.
var wireSignals = map[string]syscall.Signal{
	"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "QUIT": syscall.SIGQUIT, "HUP": syscall.SIGHUP,
	"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, "KILL": syscall.SIGKILL,
	stopName: syscall.SIGTSTP, "CONT": syscall.SIGCONT,
}

// notifyStop relays to c that the terminal stops this process, as on Ctrl-Z. It does
// not if that is ignored, or if there is no process that could continue this one.
func notifyStop(c chan<- os.Signal) {
	if !signal.Ignored(syscall.SIGTSTP) && os.Getpid() != 1 {
		signal.Notify(c, syscall.SIGTSTP)
	}
}

// stop stops the processes, and then this one. When this one is continued, it
// continues them.
func (s *supervisor) stop() {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	s.signalAll(syscall.SIGTSTP)
	flushHosts(s.job.hosts)
	syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	<-continued
	s.signalAll(syscall.SIGCONT)
}

// signalGroup sends a signal to a process and to all of its group.
func signalGroup(p *os.Process, sig os.Signal) {
	syscall.Kill(-p.Pid, sig.(syscall.Signal)) // fails only if the group is empty
}

// killedBy returns the signal that ended a process, or nil.
func killedBy(state *os.ProcessState) os.Signal {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return ws.Signal()
	}
	return nil
}
