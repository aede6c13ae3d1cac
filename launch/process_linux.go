package launch

import "syscall"

// executable is this process's own, also when the file has been replaced.
func executable() (string, error) { return "/proc/self/exe", nil }

// ownGroup gives a process a group of its own, and ties its life to that of the
// thread that starts it.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
