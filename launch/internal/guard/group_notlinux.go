//go:build unix && !linux

package guard

import (
	"os"
	"syscall"
)

func executable() (string, error) { return os.Executable() }

// OwnGroup gives a process a group of its own.
func OwnGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
