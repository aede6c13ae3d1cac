//go:build unix

package launch

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// foreground waits until this process may read from f. A job in a terminal's
// background would be stopped if it tried, so it reads nothing until it is
// brought to the foreground. It returns false if the job is over before that.
func foreground(f *os.File, over <-chan struct{}) bool {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	for {
		var group int
		conn, err := f.SyscallConn()
		if err != nil {
			return true
		}
		conn.Control(func(fd uintptr) { group, err = unix.IoctlGetInt(int(fd), unix.TIOCGPGRP) })
		if err != nil || group == unix.Getpgrp() {
			return true // not a terminal, or ours
		}
		select {
		case <-continued:
		case <-over:
			return false
		}
	}
}
