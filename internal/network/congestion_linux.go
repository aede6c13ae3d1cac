package network

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Unpaced asks for a congestion control that does not pace. Nothing is congested within a
// machine. What a clock paces, as BBR does, takes up to twice as long. Reno is in every
// kernel, and free to use; where it is not, the socket stays as it is.
//
// A connection on which BBR has begun is paced for good, also after this. So a socket
// calls this before it connects, and a listener for the connections that it accepts.
func Unpaced(fd uintptr) {
	_ = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, "reno") // it works without, slower
}

// unpaced is the Control function of sockets at loopback addresses.
func unpaced(_, _ string, c syscall.RawConn) error { return c.Control(Unpaced) }
