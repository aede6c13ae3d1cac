package network

import (
	"net"
	"syscall"
	"time"
)

// LossTimeout is within which time a host is noticed from which no packet comes any more.
const LossTimeout = 5 * time.Second

const (
	// probePause is how long a connection is idle before a keep-alive probe, and the
	// pause between probes. The host is lost when probesMax of them have no answer.
	probePause = time.Second
	probesMax  = 3

	// silenceMax is for how long no packet may come although one has to.
	silenceMax = (1 + probesMax) * probePause

	// unansweredMax is for how long the system sends data again. It begins with the first
	// time, and ends keep-alive probes as well, but not before the last of them.
	unansweredMax = silenceMax - 3*probePause/4

	// LookPause is how often to ask [HostIsSilent].
	LookPause = 500 * time.Millisecond
)

var probes = net.KeepAliveConfig{Enable: true, Idle: probePause, Interval: probePause, Count: probesMax}

// WatchHost has the system end a connection within [LossTimeout] when no packet comes any
// more from the host of the other end. It is for connections of short messages that both
// ends always read: on Linux, a peer that leaves so much unread that no more can be sent to
// it is lost as well, and on a connection that was full when the host was lost, that may
// take longer. A connection within this host is left as it is.
func WatchHost(conn net.Conn) error { return watch(conn, watchUnread) }

// WatchDataHost is [WatchHost] for connections that a peer may leave unread for as long
// as it likes. On Linux, the system ends the connection only while nothing is under way
// to the peer; otherwise [HostIsSilent] tells.
func WatchDataHost(conn net.Conn) error { return watch(conn, watchRead) }

func watch(conn net.Conn, set func(fd uintptr) error) error {
	if c, ok := conn.(interface{ NetConn() net.Conn }); ok { // of package tls
		conn = c.NetConn()
	}
	c, ok := conn.(*net.TCPConn)
	if !ok || OnOneHost(c) {
		return nil
	}
	if err := c.SetKeepAliveConfig(probes); err != nil {
		return err
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	return control(raw, set)
}

func control(raw syscall.RawConn, set func(fd uintptr) error) error {
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = set(fd) }); err != nil {
		return err
	}
	return failed
}
