package guard

import (
	"os"
	"syscall"
)

func executable() (string, error) { return os.Executable() }

// OwnGroup returns nil: Windows has no process groups.
func OwnGroup() *syscall.SysProcAttr { return nil }

func ownSession() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// killGroup kills a process.
func killGroup(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		p.Kill()
		p.Release()
	}
}
