//go:build unix

package launch

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// terminalPoll is how long mayRead waits. The kernel sends no signal when a process
// comes to the foreground, so that has to be polled.
const terminalPoll = 100 * time.Millisecond

// isTerminal reports whether f is a terminal that has a foreground.
func isTerminal(f *os.File) bool {
	_, err := foregroundGroup(f)
	return err == nil
}

// mayRead waits until the terminal has input for this process in its foreground, and
// reports whether it has. It returns false after terminalPoll.
func mayRead(f *os.File) bool {
	if group, err := foregroundGroup(f); err == nil && group != unix.Getpgrp() {
		time.Sleep(terminalPoll)
		return false
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return true
	}
	ready := 1
	conn.Control(func(fd uintptr) {
		ready, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(terminalPoll.Milliseconds()))
	})
	return ready > 0 || err != nil && err != unix.EINTR
}

// foregroundGroup returns the process group in the foreground of a terminal.
func foregroundGroup(f *os.File) (group int, err error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	if cerr := conn.Control(func(fd uintptr) { group, err = unix.IoctlGetInt(int(fd), unix.TIOCGPGRP) }); cerr != nil {
		return 0, cerr
	}
	return group, err
}
