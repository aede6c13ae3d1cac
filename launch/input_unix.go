//go:build unix

package launch

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// foreground waits until this process may read from f. The kernel stops a process
// in a terminal's background that reads from the terminal, and it sends no signal
// when the process comes to the foreground, so foreground polls. It returns false
// if the job is over before that.
func foreground(f *os.File, over <-chan struct{}) bool {
	for !mayRead(f) {
		select {
		case <-time.After(100 * time.Millisecond):
		case <-over:
			return false
		}
	}
	return true
}

// mayRead reports whether f is not a terminal, or this process runs in its
// foreground.
func mayRead(f *os.File) bool {
	conn, err := f.SyscallConn()
	if err != nil {
		return true
	}
	group := 0
	conn.Control(func(fd uintptr) { group, err = unix.IoctlGetInt(int(fd), unix.TIOCGPGRP) })
	return err != nil || group == unix.Getpgrp()
}
