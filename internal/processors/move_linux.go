package processors

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Current returns the number of the processor that this thread runs on, or -1.
func Current() int {
	var cpu uint32
	if _, _, errno := syscall.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&cpu)), 0, 0); errno != 0 {
		return -1
	}
	return int(cpu)
}

// Nth returns the number of the i-th of the processors that this thread may run on, where
// the first one follows the last one. It returns -1 if there is just one.
func Nth(i int) int {
	var all unix.CPUSet
	if unix.SchedGetaffinity(0, &all) != nil || all.Count() < 2 {
		return -1
	}
	cpu := -1
	for i %= all.Count(); i >= 0; i-- {
		for cpu++; !all.IsSet(cpu); cpu++ {
		}
	}
	return cpu
}

// MoveTo moves this thread to a processor, if it may run there. The scheduler may move it
// away again.
func MoveTo(cpu int) {
	runtime.LockOSThread() // the calls are about the same thread
	defer runtime.UnlockOSThread()
	var all, one unix.CPUSet
	if unix.SchedGetaffinity(0, &all) != nil || !all.IsSet(cpu) {
		return
	}
	one.Set(cpu)
	if unix.SchedSetaffinity(0, &one) == nil {
		_ = unix.SchedSetaffinity(0, &all) // as it was before
	}
}
