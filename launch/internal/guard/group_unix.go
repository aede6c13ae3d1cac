//go:build unix

package guard

import "syscall"

// killGroup kills the group that a process has led.
func killGroup(pid int) { syscall.Kill(-pid, syscall.SIGKILL) }

// ownSession detaches a process from the launcher's terminal.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
