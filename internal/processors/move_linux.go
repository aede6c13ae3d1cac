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
	move(func(all unix.CPUSet) (to unix.CPUSet) {
		if all.IsSet(cpu) {
			to.Set(cpu)
		}
		return to
	})
}

// MoveFrom moves this thread to another processor than one, if it may run on others. The
// scheduler may move it back.
func MoveFrom(cpu int) {
	move(func(all unix.CPUSet) unix.CPUSet {
		all.Clear(cpu)
		return all
	})
}

// move moves this thread to some of the processors that it may run on, which may be none.
func move(some func(all unix.CPUSet) unix.CPUSet) {
	runtime.LockOSThread() // the calls are about the same thread
	defer runtime.UnlockOSThread()
	var all unix.CPUSet
	if unix.SchedGetaffinity(0, &all) != nil {
		return
	}
	to := some(all)
	if to.Count() > 0 && unix.SchedSetaffinity(0, &to) == nil {
		_ = unix.SchedSetaffinity(0, &all) // as it was before
	}
}
