package testenv

import (
	"net"
	"testing"
)

// FreeAddress returns an address of a loopback interface at which nothing listens, as in
// 127.0.0.1:4711. Until the test ends, the system gives its port to nobody who asks for any
// port; a process that asks for this one can listen at it. The host is that of the address.
func FreeAddress(t testing.TB, host string) string {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	// A connection that was accepted keeps the port.
	dialed, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dialed.Close() })
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { accepted.Close() })
	return l.Addr().String()
}
