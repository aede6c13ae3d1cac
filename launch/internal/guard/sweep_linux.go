package guard

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// sweep kills every process whose environment holds the variable, as in
// NAME=value, and returns their number. It finds processes that have left their
// group, but not processes whose environment was replaced.
func sweep(variable string) (found int) {
	proc, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	for _, entry := range proc {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		environ, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		if err != nil || !holds(environ, variable) {
			continue
		}
		if syscall.Kill(pid, syscall.SIGKILL) == nil {
			found++
		}
	}
	return found
}

// holds reports whether environ, a list of strings that each end in a zero byte,
// contains the variable.
func holds(environ []byte, variable string) bool {
	for v := range bytes.SplitSeq(environ, []byte{0}) {
		if string(v) == variable {
			return true
		}
	}
	return false
}
