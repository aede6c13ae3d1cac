package network

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// TextMax is how many bytes the text of a process's addresses has at most.
const TextMax = 1 << 10

// Join returns the text of addresses at a port, separated by commas. If it would have
// more than [TextMax] bytes, the last addresses are missing.
func Join(addresses []netip.Addr, port uint16) string {
	var b strings.Builder
	for _, a := range addresses {
		one := netip.AddrPortFrom(a, port).String()
		if b.Len()+len(",")+len(one) > TextMax {
			break
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(one)
	}
	return b.String()
}

// Split returns the addresses of a text, each with a port, for [Dial]. Beside those of
// [Join], it may have names of hosts.
func Split(text string) ([]string, error) {
	if len(text) > TextMax {
		return nil, fmt.Errorf("an address of %d bytes, at most %d are allowed", len(text), TextMax)
	}
	all := strings.Split(text, ",")
	for _, a := range all {
		host, port, err := net.SplitHostPort(a)
		n, notPort := strconv.ParseUint(port, 10, 16)
		if err != nil || host == "" || strings.ContainsFunc(host, notInHost) || notPort != nil || n == 0 {
			return nil, fmt.Errorf("the address %q: want as 10.1.2.3:4711, [fd00::1]:4711 or node1:4711, several separated by commas", a)
		}
	}
	return all, nil
}

// notInHost reports whether a name of a host, or an address with a zone, has no such
// character.
func notInHost(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', strings.ContainsRune(".-_:%", r):
		return false
	}
	return true
}
