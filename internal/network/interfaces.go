package network

import (
	"fmt"
	"net"
	"net/netip"
	"path"
	"strings"
)

// An Interface is a network interface of a host.
type Interface struct {
	Name      string
	Flags     net.Flags
	Addresses []netip.Addr
}

// Interfaces returns the interfaces of this host.
func Interfaces() ([]Interface, error) {
	list, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("the network interfaces of this host: %w", err)
	}
	all := make([]Interface, 0, len(list))
	for _, i := range list {
		addresses, err := i.Addrs()
		if err != nil {
			continue // it has just gone
		}
		found := Interface{Name: i.Name, Flags: i.Flags}
		for _, a := range addresses {
			if n, ok := a.(*net.IPNet); ok {
				if address, ok := netip.AddrFromSlice(n.IP); ok {
					found.Addresses = append(found.Addresses, address.Unmap())
				}
			}
		}
		all = append(all, found)
	}
	return all, nil
}

// A class says how likely it is that other hosts reach an address. Lower is better.
type class int

const (
	direct     class = iota // an IPv4 address of a network that the host is in
	directIPv6              // an IPv6 address of such a network
	indirect                // an address of a bridge, a tunnel, or an interface without a carrier
	linkLocal               // an IPv4 address that means something on one link alone
	loopback
	useless
)

// virtual are names of interfaces that connect programs of one host. Docker and libvirt
// give theirs the same address on every host.
var virtual = [...]string{
	"docker*", "br-*", "virbr*", "veth*", "cni*", "flannel*", "cali*", "cilium*",
	"podman*", "lxc*", "lxdbr*", "vmnet*", "tun*", "tap*",
}

// classOf returns the class of an address, and the reason if it is not the best.
func (i *Interface) classOf(a netip.Addr) (c class, reason string) {
	switch {
	case i.Flags&net.FlagUp == 0:
		return useless, "its interface is down"
	case a.IsLoopback() || i.Flags&net.FlagLoopback != 0:
		return loopback, "no other host reaches a loopback address"
	case a.Is4() && a.IsLinkLocalUnicast():
		return linkLocal, "it is link-local: it means something on one link alone"
	case a.IsLinkLocalUnicast():
		return useless, "it is link-local: it means something on one link alone"
	case !a.IsGlobalUnicast():
		return useless, "it is not the address of a host"
	case i.Flags&net.FlagRunning == 0:
		return indirect, "its interface has no carrier"
	case i.Flags&net.FlagPointToPoint != 0:
		return indirect, "its interface is a tunnel"
	}
	for _, name := range virtual {
		if ok, _ := path.Match(name, i.Name); ok {
			return indirect, "its interface connects programs of one host"
		}
	}
	if a.Is4() {
		return direct, ""
	}
	return directIPv6, ""
}

// list writes interfaces with their addresses for an error.
func list(interfaces []Interface) string {
	var b strings.Builder
	for n, i := range interfaces {
		if n > 0 {
			b.WriteString("; ")
		}
		b.WriteString(i.Name)
		for _, a := range i.Addresses {
			b.WriteString(" " + a.String())
		}
		switch {
		case i.Flags&net.FlagUp == 0:
			b.WriteString(" (down)")
		case len(i.Addresses) == 0:
			b.WriteString(" (no address)")
		}
	}
	return b.String()
}
