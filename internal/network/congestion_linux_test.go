package network

import (
	"context"
	"net"
	"net/netip"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// congestion returns the congestion control of a connection.
func congestion(t *testing.T, conn net.Conn) (how string) {
	t.Helper()
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err == nil {
		err = control(raw, func(fd uintptr) (err error) {
			how, err = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
			return err
		})
	}
	if err != nil {
		t.Error(err)
	}
	return how
}

// The system's default may pace, and what has begun to pace does not end.
func TestAConnectionWithinTheMachineBeginsUnpaced(t *testing.T) {
	loopback := netip.MustParseAddr("127.0.0.1")
	l, err := Listen([]netip.Addr{loopback}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = Dial(context.Background(), []string{l.Addr().String()}, func(_ context.Context, conn net.Conn) (net.Conn, error) {
		defer conn.Close()
		accepted, err := l.Accept()
		if err != nil {
			return nil, err
		}
		defer accepted.Close()
		for side, c := range map[string]net.Conn{"dials": conn, "accepts": accepted} {
			if how := congestion(t, c); how != "reno" {
				t.Errorf("congestion control %q on the side that %s, want reno", how, side)
			}
		}
		return conn, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
