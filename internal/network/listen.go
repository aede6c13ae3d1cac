package network

import (
	"context"
	"net"
	"net/netip"
	"strconv"
)

// Listen listens for processes that dial one of these addresses: at the address if there
// is one, otherwise at all addresses of this host. The system chooses a port for 0.
func Listen(addresses []netip.Addr, port uint16) (net.Listener, error) {
	host := ""
	var config net.ListenConfig
	if len(addresses) == 1 {
		host = addresses[0].String()
		if addresses[0].IsLoopback() {
			config.Control = unpaced
		}
	}
	return config.Listen(context.Background(), "tcp", net.JoinHostPort(host, strconv.Itoa(int(port))))
}

// Port returns the port of a listener.
func Port(l net.Listener) uint16 {
	return l.Addr().(*net.TCPAddr).AddrPort().Port()
}

// LocalAddress returns the address of this end of a connection. It is not valid if the
// connection is not over TCP.
func LocalAddress(conn net.Conn) netip.Addr {
	a, _ := conn.LocalAddr().(*net.TCPAddr)
	return a.AddrPort().Addr().Unmap()
}

// OnOneHost reports whether both ends of a connection have the same address, and so are
// on this host.
func OnOneHost(conn net.Conn) bool {
	here, ok := conn.LocalAddr().(*net.TCPAddr)
	there, also := conn.RemoteAddr().(*net.TCPAddr)
	return ok && also && here.IP.Equal(there.IP)
}
