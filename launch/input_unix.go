//go:build unix

package launch

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// foreground waits until this process may read from f. A job in a terminal's
// background would be stopped if it tried, so it reads nothing until it is
// brought to the foreground, of which nobody tells. It returns false if the job
// is over before that.
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

// mayRead reports whether f is no terminal, or one in whose foreground this
// process runs.
func mayRead(f *os.File) bool {
	conn, err := f.SyscallConn()
	if err != nil {
		return true
	}
	group := 0
	conn.Control(func(fd uintptr) { group, err = unix.IoctlGetInt(int(fd), unix.TIOCGPGRP) })
	return err != nil || group == unix.Getpgrp()
}
