//go:build unix

package bench

import "syscall"

// contextSwitches returns how often a processor has left a thread of this process for
// another thread: because the thread waited, or yielded, or its time was over. A yield
// that finds no other thread to run is not counted.
func contextSwitches() (n int64, known bool) {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0, false
	}
	return int64(u.Nvcsw) + int64(u.Nivcsw), true
}
