package tcp

import (
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"
	"unsafe"

	"github.com/chorale-go/chorale/internal/network"
	"golang.org/x/sys/unix"
)

// sockets is the poller for sockets.
//
// The sockets are not in the Go runtime's poller: it would wake a thread for every
// message, also when the goroutine that waits is reading already. They are in an epoll
// instance of the endpoint, and each is armed there only while the owner sleeps for it.
// That instance is in the runtime's poller, so that a goroutine sleeps in it without
// keeping a processor.
type sockets struct {
	links []*link
	fd    int // of epoll
	epoll *os.File
	raw   syscall.RawConn
	event int // an eventfd that wake writes to

	events  [16]unix.EpollEvent
	found   int  // events that are set
	timed   bool // a deadline is set
	collect func(uintptr) bool
}

// wakeRank stands for the eventfd where an event names a link by its rank.
const wakeRank = -1

// newPoller makes a poller for links, which are indexed by rank.
func newPoller(links []*link) (poller, error) {
	p := &sockets{links: links, event: -1}
	if err := p.open(); err != nil {
		p.close()
		return nil, fmt.Errorf("epoll: %w", err)
	}
	p.collect = func(uintptr) bool {
		n, err := unix.EpollWait(p.fd, p.events[:], 0)
		p.found = max(n, 0)
		return n > 0 || err != nil && err != unix.EINTR
	}
	return p, nil
}

func (p *sockets) open() (err error) {
	if p.fd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return err
	}
	err = unix.SetNonblock(p.fd, true)
	p.epoll = os.NewFile(uintptr(p.fd), "epoll")
	if err != nil {
		return err
	}
	if p.raw, err = p.epoll.SyscallConn(); err != nil {
		return err
	}
	if p.event, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return err
	}
	return unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, p.event, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: wakeRank})
}

func (p *sockets) attach(l *link, conn net.Conn) (stream, error) {
	defer conn.Close()
	c, ok := conn.(syscall.Conn)
	if !ok {
		return nil, fmt.Errorf("a %T has no file descriptor", conn)
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	s := &socket{rank: l.peer}
	var failed error
	err = raw.Control(func(fd uintptr) {
		s.fd, failed = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0)
	})
	if err == nil && failed == nil && network.OnOneHost(conn) {
		network.Unpaced(uintptr(s.fd)) // those at loopback addresses have begun so
	}
	if err == nil {
		err = failed
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (p *sockets) wait(links []*link, d time.Duration) {
	for _, l := range links {
		l.ready = 0
		if err := p.arm(l.stream.(*socket), l.want); err != nil {
			l.ready = l.want // reading or writing will say what is wrong
			d = 0
		}
	}
	p.found = 0
	if d >= 0 {
		p.timed = true
		p.epoll.SetReadDeadline(time.Now().Add(d))
	} else if p.timed {
		p.timed = false
		p.epoll.SetReadDeadline(time.Time{})
	}
	// The only error is that d is over.
	_ = p.raw.Read(p.collect)
	for _, ev := range p.events[:p.found] {
		if ev.Fd == wakeRank {
			var b [8]byte
			unix.Read(p.event, b[:])
			continue
		}
		l := p.links[ev.Fd]
		l.stream.(*socket).armed = 0
		switch {
		case ev.Events&^(unix.EPOLLIN|unix.EPOLLOUT) != 0:
			l.ready = l.want
		default:
			if ev.Events&unix.EPOLLIN != 0 {
				l.ready |= readable
			}
			if ev.Events&unix.EPOLLOUT != 0 {
				l.ready |= writable
			}
		}
	}
}

// arm has the next event of s wake the owner.
func (p *sockets) arm(s *socket, want events) error {
	if s.armed == want {
		return nil
	}
	ev := unix.EpollEvent{Events: unix.EPOLLONESHOT, Fd: int32(s.rank)}
	if want&readable != 0 {
		ev.Events |= unix.EPOLLIN
	}
	if want&writable != 0 {
		ev.Events |= unix.EPOLLOUT
	}
	how := unix.EPOLL_CTL_MOD
	if !s.known {
		how = unix.EPOLL_CTL_ADD
	}
	if err := unix.EpollCtl(p.fd, how, s.fd, &ev); err != nil {
		return err
	}
	s.known, s.armed = true, want
	return nil
}

func (p *sockets) spins() bool { return true }

func (p *sockets) yield() { syscall.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

func (p *sockets) wake() {
	one := [8]byte{1} // eight bytes of either order count as more than nothing
	unix.Write(p.event, one[:])
}

func (p *sockets) close() {
	if p.epoll != nil {
		p.epoll.Close()
	}
	if p.event >= 0 {
		unix.Close(p.event)
	}
}

// A socket is a stream over a file descriptor that never blocks.
type socket struct {
	fd    int
	rank  int
	known bool   // to the epoll instance
	armed events // what it waits for there
	iov   [2]unix.Iovec
}

func (s *socket) read(p []byte) (int, error) {
	for {
		n, err := read(s.fd, p)
		switch {
		case n > 0:
			return n, nil
		case err == nil:
			return 0, io.EOF
		case err == unix.EAGAIN:
			return 0, errAgain
		case err != unix.EINTR:
			return 0, err
		}
	}
}

func (s *socket) write(head, body []byte) (n int, err error) {
	for {
		switch {
		case len(body) == 0:
			n, err = write(s.fd, head)
		case len(head) == 0:
			n, err = write(s.fd, body)
		default:
			n, err = s.writev(head, body)
		}
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return 0, errAgain
		case err != nil:
			return 0, err
		case n < len(head)+len(body):
			return n, errAgain
		}
		return n, nil
	}
}

// rawMax is up to how many bytes read and write do not tell the Go scheduler of the
// call, which cannot block. Telling it takes longer than an empty read. During a call
// that it knows of, a thread of the runtime wakes every 20 µs to see whether another
// goroutine needs the processor, and takes it from this one. A call of rawMax bytes
// holds up a garbage collection for as long as a copy of that many does.
const rawMax = 1 << 20

func read(fd int, p []byte) (int, error) {
	return transfer(len(p), unix.SYS_READ, fd, unsafe.Pointer(unsafe.SliceData(p)), len(p))
}

func write(fd int, p []byte) (int, error) {
	return transfer(len(p), unix.SYS_WRITE, fd, unsafe.Pointer(unsafe.SliceData(p)), len(p))
}

func (s *socket) writev(head, body []byte) (int, error) {
	s.iov = [2]unix.Iovec{{Base: &head[0]}, {Base: &body[0]}}
	s.iov[0].SetLen(len(head))
	s.iov[1].SetLen(len(body))
	n, err := transfer(len(body), unix.SYS_WRITEV, s.fd, unsafe.Pointer(&s.iov), len(s.iov))
	s.iov = [2]unix.Iovec{}
	return n, err
}

// transfer makes a system call that moves up to size bytes.
func transfer(size int, number uintptr, fd int, p unsafe.Pointer, n int) (int, error) {
	var done uintptr
	var errno syscall.Errno
	if size > rawMax {
		done, _, errno = syscall.Syscall(number, uintptr(fd), uintptr(p), uintptr(n))
	} else {
		done, _, errno = syscall.RawSyscall(number, uintptr(fd), uintptr(p), uintptr(n))
	}
	if errno != 0 {
		return -1, errno
	}
	return int(done), nil
}

func (s *socket) unsent() int { return s.queueLen(unix.SIOCOUTQNSD) }

func (s *socket) shutdown() {
	_ = unix.Shutdown(s.fd, unix.SHUT_WR) // it fails where the connection has ended
}

// What the peer's kernel has acknowledged is safe: its process reads that before it
// learns of a reset, which closing over unread bytes, or receiving more afterwards,
// causes.
func (s *socket) unacknowledged() int {
	var b [4 << 10]byte
	for {
		if n, err := s.read(b[:]); err == errAgain {
			return s.queueLen(unix.SIOCOUTQ)
		} else if n == 0 {
			return 0
		}
	}
}

// queueLen returns a length of the socket's send queue. It is 0 if the socket has none.
func (s *socket) queueLen(which uint) int {
	n, _ := unix.IoctlGetInt(s.fd, which)
	return n
}

func (s *socket) silent() bool { return network.HostIsSilent(uintptr(s.fd)) }

func (s *socket) close() { unix.Close(s.fd) }
