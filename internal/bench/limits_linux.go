package bench

import (
	"errors"
	"io"
	"net"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pin pins the calling thread to the first or the second processor that the process
// may use.
func pin(thread int) error {
	var allowed, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		return err
	}
	for cpu := range len(allowed) * 64 {
		if !allowed.IsSet(cpu) {
			continue
		}
		if thread == 0 {
			one.Set(cpu)
			return unix.SchedSetaffinity(0, &one)
		}
		thread--
	}
	return errors.New("too few processors")
}

// pingpong exchanges 8 bytes with the other end a number of times. It polls the
// socket and does not sleep.
func pingpong(end *net.TCPConn, times int) error {
	raw, err := end.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		for range times {
			var buf [8]byte
			if _, failed = unix.Write(int(fd), buf[:]); failed != nil {
				return
			}
			if failed = readFull(int(fd), buf[:]); failed != nil {
				return
			}
		}
	})
	return errors.Join(err, failed)
}

// readFull fills buf from a nonblocking socket.
func readFull(fd int, buf []byte) error {
	for polls := 0; len(buf) > 0; polls++ {
		n, err := unix.Read(fd, buf)
		switch {
		case n > 0:
			buf = buf[n:]
		case n == 0 && err == nil:
			return io.ErrUnexpectedEOF
		case err != unix.EAGAIN && err != unix.EINTR:
			return err
		case polls > spinLimit:
			runtime.Gosched()
		}
	}
	return nil
}

// hugePages returns n bytes of memory that the kernel is asked to keep on huge pages, and
// that have been written to.
func hugePages(n int) (buf []byte, free func(), err error) {
	const size = 2 << 20
	all, err := unix.Mmap(-1, 0, (n+2*size-1)/size*size+size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, nil, err
	}
	free = func() { _ = unix.Munmap(all) } // it was mapped
	if err := unix.Madvise(all, unix.MADV_HUGEPAGE); err != nil {
		free()
		return nil, nil, err
	}
	for i := range all {
		all[i] = 1
	}
	begin := -uintptr(unsafe.Pointer(unsafe.SliceData(all))) % size
	return all[begin:][:n], free, nil
}
