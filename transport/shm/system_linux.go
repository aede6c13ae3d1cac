package shm

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// createMemory makes a file without a name, of a length of which the first bytes are
// allocated: a lack of memory is an error now, and not a signal later.
func createMemory(bytes, length int64) (*os.File, error) {
	fd, err := unix.MemfdCreate("chorale", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return createFile(bytes, length, err)
	}
	f := os.NewFile(uintptr(fd), "chorale")
	if err := allocate(f, bytes, length); err != nil {
		f.Close()
		return nil, err
	}
	// No process can take pages away from the others.
	_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("sealing the shared memory: %w", err)
	}
	return f, nil
}

// createFile makes a file without a name in /dev/shm, where the kernel has no
// memfd.
func createFile(bytes, length int64, why error) (*os.File, error) {
	fd, err := unix.Open("/dev/shm", unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("no memfd (%w), and no file in /dev/shm: %w", why, err)
	}
	f := os.NewFile(uintptr(fd), "chorale")
	if err := allocate(f, bytes, length); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// allocate makes the file as long as that, and allocates its first bytes. Where files may
// not be so long, it makes it no longer than these: the system would end the process.
func allocate(f *os.File, bytes, length int64) error {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_FSIZE, &limit) == nil && limit.Cur < uint64(length) {
		length = bytes
	}
	if err := unix.Ftruncate(int(f.Fd()), length); err != nil {
		return fmt.Errorf("a file of %s: %w", mebibytes(length), err)
	}
	return commit(f, 0, bytes)
}

// reopen duplicates the file, for what is mapped later, and opens it once more. A lock that
// is set through own belongs to this endpoint alone, and the kernel releases it when the
// process ends, or own is closed: a mapping would keep own open. Where the file cannot be
// opened by its name, own is nil, and only the launcher knows which ranks are lost.
func reopen(f *os.File) (file, own *os.File, err error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	own, err = os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), os.O_RDWR, 0)
	if err != nil {
		own = nil
	}
	return os.NewFile(uintptr(fd), f.Name()), own, nil
}

// mapFile maps n bytes of the file. Where that is as long, it begins on a huge page.
func mapFile(f *os.File, offset int64, n int) ([]byte, error) {
	failed := func(err error) ([]byte, error) { return nil, fmt.Errorf("mapping %s: %w", mebibytes(int64(n)), err) }
	if n < hugePageLen {
		mem, err := unix.Mmap(int(f.Fd()), offset, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			return failed(err)
		}
		return mem, nil
	}
	// Addresses of a huge page more are reserved, and the rest is given back. If that fails,
	// addresses are lost, of which there are enough.
	all, err := unix.MmapPtr(-1, 0, nil, uintptr(n+hugePageLen), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return failed(err)
	}
	before := -uintptr(all) % hugePageLen
	begin := unsafe.Add(all, before)
	if _, err := unix.MmapPtr(int(f.Fd()), offset, begin, uintptr(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_FIXED); err != nil {
		_ = unix.MunmapPtr(all, uintptr(n+hugePageLen))
		return failed(err)
	}
	if before > 0 {
		_ = unix.MunmapPtr(all, before)
	}
	if behind := roundUp(n, os.Getpagesize()); before < hugePageLen {
		_ = unix.MunmapPtr(unsafe.Add(begin, behind), uintptr(hugePageLen+n-behind)-before)
	}
	return unsafe.Slice((*byte)(begin), n), nil
}

func unmapFile(mem []byte) error {
	if len(mem) == 0 {
		return nil
	}
	return unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(mem)), uintptr(len(mem)))
}

// commit allocates memory of the file, all of it or none: a lack of it is an error now,
// and not a signal later. More than the machine has is not tried: the kernel would end
// processes on the way.
func commit(f *os.File, offset, n int64) error {
	err := enough(n)
	if err == nil {
		err = fill(f, offset, n)
	}
	return committed(f, offset, n, err)
}

// commitHuge is commit for memory that is mapped, in huge pages if the kernel can. Denied is why
// it has not made all of them. The kernel makes a huge page of a single page, clears the rest
// of it at once, and copies that page alone: an eighth of the time of allocating all pages first.
func commitHuge(f *os.File, offset int64, mem []byte) (denied, err error) {
	n := int64(len(mem))
	err = enough(n)
	for at := int64(0); at < n && err == nil; at += hugePageLen {
		err = fill(f, offset+at, int64(os.Getpagesize()))
	}
	if err == nil {
		_, _, denied = collapse(uintptr(unsafe.Pointer(unsafe.SliceData(mem))), uintptr(n))
		err = fill(f, offset, n)
	}
	return denied, committed(f, offset, n, err)
}

// enough reports an error if the machine has less memory.
func enough(n int64) error {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil && uint64(n) > uint64(info.Totalram)*uint64(info.Unit) {
		return unix.ENOSPC
	}
	return nil
}

// fill allocates what is missing of a part of the file.
func fill(f *os.File, offset, n int64) error {
	const most = 64 << 20 // in a system call, which a signal may interrupt
	for done := int64(0); done < n; {
		err := unix.Fallocate(int(f.Fd()), 0, offset+done, min(n-done, most))
		switch {
		case err == nil:
			done += min(n-done, most)
		case err != unix.EINTR:
			return err
		}
	}
	return nil
}

// committed gives memory of which only some could be allocated back.
func committed(f *os.File, offset, n int64, err error) error {
	if err == nil {
		return nil
	}
	_ = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, offset, n) // the first error counts
	return fmt.Errorf("%s of shared memory: %w", mebibytes(n), err)
}

// decommit gives mapped memory of the file back to the system. It reads as zeros then. Where
// the system takes nothing back, it stays as it is, and Alloc clears it when it is used again.
func decommit(mem []byte) { _ = unix.Madvise(mem, unix.MADV_REMOVE) }

// lockRank locks the byte of a rank as long as this process lives, or until
// the file is closed. It returns false if a process has the lock.
func lockRank(own *os.File, rank int) bool {
	return unix.FcntlFlock(own.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{
		Type: unix.F_WRLCK, Whence: io.SeekStart, Start: int64(rank), Len: 1,
	}) == nil
}

// rankLocked reports whether a process has the lock of a rank.
func rankLocked(own *os.File, rank int) bool {
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: int64(rank), Len: 1}
	return unix.FcntlFlock(own.Fd(), unix.F_OFD_GETLK, &lock) != nil || lock.Type != unix.F_UNLCK
}

// holdsRank reports whether a process has the lock of a rank, through the file that is
// open there under a descriptor. The kernel says so: what a process writes about itself
// proves nothing.
func holdsRank(own *os.File, rank int, pid, descriptor int64) bool {
	var st unix.Stat_t
	if err := unix.Fstat(int(own.Fd()), &st); err != nil {
		return false
	}
	info, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%d", pid, descriptor))
	lock := fmt.Sprintf(" %02x:%02x:%d %d %d\n", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino, rank, rank)
	return err == nil && strings.Contains(string(info), lock)
}

const futexWaitOp, futexWakeOp = 0, 1 // not private: the word is shared between processes

// futexWait sleeps while the word has that value, d at most.
func futexWait(word *uint32, value uint32, d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	syscall.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWaitOp, uintptr(value), uintptr(unsafe.Pointer(&ts)), 0, 0)
}

// futexWake wakes every thread that sleeps on the word.
func futexWake(word *uint32) {
	syscall.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWakeOp, 1<<30, 0, 0, 0)
}

// yield lets another process have the core.
func yield() { syscall.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// allowPtrace lets the ranks that this process's parent has started read this
// process's memory, where the system asks for that.
func allowPtrace() {
	_ = unix.Prctl(unix.PR_SET_PTRACER, uintptr(os.Getppid()), 0, 0, 0) // not known without Yama, nor needed
}

// collapse moves memory of this process to huge pages, if the kernel can, and returns
// the processor time that it took. Later reports whether to try again soon, because
// another process reads the memory just now. Denied is why the kernel has not done it, and
// would not do it soon.
func collapse(address, n uintptr) (later bool, took time.Duration, denied error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := threadTime()
	_, _, errno := syscall.Syscall(unix.SYS_MADVISE, address, n, unix.MADV_COLLAPSE)
	took = threadTime() - start
	switch errno {
	case 0:
		return false, took, nil
	case unix.EAGAIN, unix.EBUSY:
		return true, took, nil
	case unix.EINVAL: // of an old kernel, of one without them, of a process and of a mapping that shall have none
		return false, took, errors.New("they need Linux 6.1, and neither the process nor the memory may be kept from having them")
	case unix.ENOMEM:
		return false, took, errors.New("no huge page was free")
	}
	return false, took, errno
}

// threadTime returns how long this thread has had a processor.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0 // no kernel is that old
	}
	return time.Duration(t.Nano())
}

const (
	// readShort is how many bytes are read in a system call that the Go scheduler does not
	// see, which takes 75 µs at most: otherwise its monitor wakes every 20 µs, takes the
	// processor from the rank, and this core from another one.
	readShort = 1 << 20
	readMost  = 4 << 20 // bytes that are read in one system call: the kernel looks up as many pages at a time, at most
)

// readPeer reads another process's memory, and after it a word, if there is one to read: what
// was read is of a process that has both.
func readPeer(pid int, into []byte, address uintptr, word *uint64, wordAddress uintptr) error {
	for {
		n := min(len(into), readMost)
		local := [2]unix.Iovec{{Base: unsafe.SliceData(into)}, {Base: (*byte)(unsafe.Pointer(word))}}
		local[0].SetLen(n)
		local[1].SetLen(int(unsafe.Sizeof(*word)))
		remote := [2]unix.RemoteIovec{{Base: address, Len: n}, {Base: wordAddress, Len: int(unsafe.Sizeof(*word))}}
		pieces := uintptr(1)
		if n == len(into) && word != nil {
			pieces = 2
		}
		var read uintptr
		var errno syscall.Errno
		if n <= readShort { // only in a direct call do the pointers keep what they point to
			read, _, errno = syscall.RawSyscall6(unix.SYS_PROCESS_VM_READV, uintptr(pid),
				uintptr(unsafe.Pointer(&local)), pieces, uintptr(unsafe.Pointer(&remote)), pieces, 0)
		} else {
			read, _, errno = syscall.Syscall6(unix.SYS_PROCESS_VM_READV, uintptr(pid),
				uintptr(unsafe.Pointer(&local)), pieces, uintptr(unsafe.Pointer(&remote)), pieces, 0)
		}
		switch {
		case errno == unix.EINTR:
			continue
		case errno != 0:
			return errno
		case read == 0:
			return io.ErrUnexpectedEOF
		case read > uintptr(len(into)): // both
			return nil
		}
		if into, address = into[read:], address+read; len(into) == 0 {
			if word != nil {
				return io.ErrUnexpectedEOF
			}
			return nil
		}
	}
}
