package shm

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// own makes a thread the owner of the rank, until release is called: it stores its number in
// the word owner, and the kernel marks that word if the thread ends before. The thread does
// nothing else, and ends with the process alone.
func (s *rankState) own() (release func(), err error) {
	began, end, ended := make(chan error), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		before, n, err := s.robust.set(unsafe.Pointer(&s.owner))
		if err == nil {
			s.owner.Store(uint32(unix.Gettid()))
		}
		if began <- err; err != nil {
			return
		}
		<-end
		s.owner.Store(0)
		syscall.RawSyscall(unix.SYS_SET_ROBUST_LIST, before, n, 0)
	}()
	if err := <-began; err != nil {
		return nil, err
	}
	return func() { close(end); <-ended }, nil
}

// set makes the list that of this thread, with a futex word as its one element, and returns
// the list that the thread had, as the C library gives its threads one.
func (l *robustList) set(word unsafe.Pointer) (before, n uintptr, err error) {
	if _, _, errno := syscall.RawSyscall(unix.SYS_GET_ROBUST_LIST, 0, uintptr(unsafe.Pointer(&before)), uintptr(unsafe.Pointer(&n))); errno != 0 {
		return 0, 0, errno
	}
	head, element := uintptr(unsafe.Pointer(l)), uintptr(unsafe.Pointer(&l.element))
	*l = robustList{first: element, offset: int(uintptr(word) - element), element: head}
	if _, _, errno := syscall.RawSyscall(unix.SYS_SET_ROBUST_LIST, head, unsafe.Offsetof(l.element), 0); errno != 0 {
		return 0, 0, errno
	}
	return before, n, nil
}
