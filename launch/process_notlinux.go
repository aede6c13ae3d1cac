//go:build unix && !linux

package launch

import (
	"os"
	"syscall"
)

func executable() (string, error) { return os.Executable() }

// ownGroup gives a process a group of its own.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
