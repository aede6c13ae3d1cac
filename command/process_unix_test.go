//go:build unix

package command

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

var signals = map[string]os.Signal{
	"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL,
	"HUP": syscall.SIGHUP, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, "QUIT": syscall.SIGQUIT,
}

// alive reports whether a process runs. A zombie does not.
func alive(pid int) bool {
	if stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); err == nil {
		text := string(stat)
		state := text[strings.LastIndexByte(text, ')')+2:]
		return state[0] != 'Z' && state[0] != 'X'
	}
	return syscall.Kill(pid, 0) == nil
}
