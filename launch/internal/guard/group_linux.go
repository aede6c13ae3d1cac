package guard

import "syscall"

// executable returns the path of this process's own executable, which is valid
// even if the file has been replaced.
func executable() (string, error) { return "/proc/self/exe", nil }

// OwnGroup gives a process a group of its own, and makes the kernel kill it when
// the thread that started it ends.
func OwnGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
