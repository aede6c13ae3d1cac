package network

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

const up = net.FlagUp | net.FlagRunning

// iface returns an interface.
func iface(name string, flags net.Flags, addresses ...string) Interface {
	i := Interface{Name: name, Flags: flags}
	for _, a := range addresses {
		i.Addresses = append(i.Addresses, netip.MustParseAddr(a))
	}
	return i
}

var (
	lo      = iface("lo", up|net.FlagLoopback, "127.0.0.1", "::1")
	eth0    = iface("eth0", up, "10.1.2.3", "fd00::3", "fe80::3")
	eth1    = iface("eth1", up, "192.168.7.3")
	ib0     = iface("ib0", up, "10.9.0.3")
	docker0 = iface("docker0", up, "172.17.0.1", "fe80::1")
	virbr0  = iface("virbr0", net.FlagUp, "192.168.122.1")
	tun0    = iface("wg0", up|net.FlagPointToPoint, "10.200.0.3")
	down    = iface("eth2", 0, "10.2.2.3")
	unused  = iface("eth3", net.FlagUp, "10.3.2.3")
	link    = iface("eth4", up, "169.254.7.7")
	host    = []Interface{lo, docker0, virbr0, eth0, eth1, down}
)

func TestTheCandidatesOfAHost(t *testing.T) {
	for _, test := range []struct {
		name       string
		interfaces []Interface
		patterns   string
		want       string // the addresses chosen, or an error
	}{
		{"a host with docker and libvirt", host, "", "10.1.2.3 192.168.7.3 fd00::3 172.17.0.1 192.168.122.1"},
		{"a cable is not plugged in", []Interface{lo, unused, eth0}, "", "10.1.2.3 fd00::3 10.3.2.3"},
		{"a tunnel", []Interface{tun0, eth1}, "", "192.168.7.3 10.200.0.3"},
		{"IPv6 alone", []Interface{lo, iface("eth0", up, "fe80::3", "2001:db8::3")}, "", "2001:db8::3"},
		{"a bridge alone", []Interface{lo, docker0}, "", "172.17.0.1"},
		{"loopback alone", []Interface{lo}, "", "127.0.0.1 ::1"},
		{"loopback and link-local", []Interface{lo, link}, "", "127.0.0.1 ::1"},
		{"nothing", []Interface{down}, "", "this host has no address at which to listen: it has eth2 10.2.2.3 (down)"},

		{"a name", host, "eth1", "192.168.7.3"},
		{"several, in the order of the user", host, "eth1, eth0", "192.168.7.3 10.1.2.3 fd00::3"},
		{"a name for another host among them", host, "ib0,eth1", "192.168.7.3"},
		{"a name is no prefix", []Interface{iface("bond0.2093", up, "10.5.0.1"), iface("bond0", up, "10.6.0.1")}, "bond0", "10.6.0.1"},
		{"stars", []Interface{eth1, eth0, ib0}, "ib*,eth*", "10.9.0.3 192.168.7.3 10.1.2.3 fd00::3"},
		{"an address", host, "192.168.7.3", "192.168.7.3"},
		{"a network with a shorter prefix", host, "10.0.0.0/8", "10.1.2.3"},
		{"a network as the interface has it", host, "10.1.2.3/16", "10.1.2.3"},
		{"a network of IPv6", host, "fd00::/8", "fd00::3"},
		{"docker's bridge by name", host, "docker0", "172.17.0.1"},
		{"loopback by name", host, "lo", "127.0.0.1 ::1"},
		{"a link-local address by name", []Interface{lo, link, eth1}, "169.254.0.0/16", "169.254.7.7"},
		{"an excluded name", host, "^eth0", "192.168.7.3 172.17.0.1 192.168.122.1"},
		{"to exclude docker does not include loopback", []Interface{lo, docker0, eth1}, "^docker0", "192.168.7.3"},
		{"all but loopback is excluded", []Interface{lo, eth1}, "^eth*", "127.0.0.1 ::1"},
		{"an excluded address of a name", host, "eth*,^fd00::/8", "10.1.2.3 192.168.7.3"},
		{"all is excluded", []Interface{lo, eth1}, "^eth*,^lo", "CHORALE_INTERFACE=^eth*,^lo: no address of this host is left: it has lo 127.0.0.1 ::1; eth1 192.168.7.3"},
		{"no match", []Interface{lo, eth1, down, iface("eth5", up)}, "ib0", "CHORALE_INTERFACE=ib0: no address of this host is left: it has lo 127.0.0.1 ::1; eth1 192.168.7.3; eth2 10.2.2.3 (down); eth5 (no address)"},
		{"an interface that is down", host, "eth2", "no address of this host is left"},
		{"a list whose meaning is not clear", host, "^docker0,lo", "is lo wanted? Write ^lo to exclude it"},
		{"a bad network", host, "10.1.0.0/33", `"10.1.0.0/33" is no name of an interface`},
		{"a bad glob", host, "[eth", `"[eth" is no name`},
		{"nothing excluded", host, "^", `"" is no name`},
		{"commas alone", host, " , ,", "10.1.2.3 192.168.7.3 fd00::3 172.17.0.1 192.168.122.1"},
	} {
		s, err := Select(test.interfaces, test.patterns)
		got := strings.Trim(fmt.Sprint(s.Addresses()), "[]")
		if err != nil {
			got = err.Error()
		}
		if got != test.want && (err == nil || !strings.Contains(got, test.want)) {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
}

func TestEveryAddressIsChosenOrRejectedWithAReason(t *testing.T) {
	all := append(slices.Clone(host), tun0, unused, link, iface("eth6", up, "ff02::1"))
	for _, patterns := range []string{"", "eth1", "^eth1", "^*"} {
		s, err := Select(all, patterns)
		if err != nil && patterns != "^*" {
			t.Errorf("%q: %v", patterns, err)
		}
		n := 0
		for _, i := range all {
			n += len(i.Addresses)
		}
		if len(s.Chosen)+len(s.Rejected) != n {
			t.Errorf("%q: %d chosen and %d rejected, of %d", patterns, len(s.Chosen), len(s.Rejected), n)
		}
		for _, c := range s.Rejected {
			if c.Reason == "" {
				t.Errorf("%q: %s of %s is rejected without a reason", patterns, c.Address, c.Interface)
			}
		}
	}
}

func TestWhatARankAdvertisesThatHasReachedAnother(t *testing.T) {
	for _, test := range []struct{ patterns, local, want string }{
		{"", "192.168.7.3", "192.168.7.3"},
		{"", "::ffff:192.168.7.3", "192.168.7.3"},
		{"", "fd00::3", "fd00::3"},
		{"", "127.0.0.1", "10.1.2.3 192.168.7.3 fd00::3 172.17.0.1 192.168.122.1 10.200.0.3"}, // rank 0 is on this host
		{"", "172.17.0.1", "172.17.0.1 10.1.2.3 192.168.7.3 fd00::3 192.168.122.1 10.200.0.3"},
		{"", "10.200.0.3", "10.200.0.3 10.1.2.3 192.168.7.3 fd00::3 172.17.0.1 192.168.122.1"}, // over a tunnel
		{"", "169.254.7.7", "169.254.7.7 10.1.2.3 192.168.7.3 fd00::3 172.17.0.1 192.168.122.1 10.200.0.3"},
		{"", "fe80::3", "10.1.2.3 192.168.7.3 fd00::3 172.17.0.1 192.168.122.1 10.200.0.3"},
		{"", "10.44.0.9", "10.44.0.9 10.1.2.3 192.168.7.3 fd00::3 172.17.0.1 192.168.122.1 10.200.0.3"}, // of no interface that is known
		{"eth1", "10.1.2.3", "192.168.7.3"},
		{"^eth0", "10.1.2.3", "192.168.7.3 172.17.0.1 192.168.122.1 10.200.0.3"},
	} {
		s, err := Select(append(slices.Clone(host), tun0, link), test.patterns)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Trim(fmt.Sprint(s.Advertise(netip.MustParseAddr(test.local))), "[]"); got != test.want {
			t.Errorf("patterns %q, local address %s: got %s, want %s", test.patterns, test.local, got, test.want)
		}
	}
}

func TestThisHostHasCandidates(t *testing.T) {
	s, err := Candidates("")
	if err != nil || len(s.Chosen) == 0 {
		t.Fatalf("%+v, %v", s, err)
	}
	for _, c := range s.Chosen {
		l, err := Listen([]netip.Addr{c.Address}, 0)
		if err != nil {
			t.Errorf("nothing can listen at %s of %s: %v", c.Address, c.Interface, err)
			continue
		}
		if at := l.Addr().(*net.TCPAddr).AddrPort(); at.Addr() != c.Address || at.Port() != Port(l) {
			t.Errorf("it listens at %s, and not at %s", at, c.Address)
		}
		l.Close()
	}
}

func TestTheTextOfAddresses(t *testing.T) {
	text := Join([]netip.Addr{netip.MustParseAddr("10.1.2.3"), netip.MustParseAddr("fd00::3")}, 4711)
	if text != "10.1.2.3:4711,[fd00::3]:4711" {
		t.Errorf("got %s", text)
	}
	if all, err := Split(text + ",node1.example:1"); err != nil || fmt.Sprint(all) != "[10.1.2.3:4711 [fd00::3]:4711 node1.example:1]" {
		t.Errorf("got %q, %v", all, err)
	}
	many := slices.Repeat([]netip.Addr{netip.MustParseAddr("2001:db8:1111:2222:3333:4444:5555:6666")}, 100)
	if all, err := Split(Join(many, 65535)); err != nil || len(all) < 20 {
		t.Errorf("of many addresses, %d survive: %v", len(all), err)
	}
	for _, bad := range []string{"", ",", "10.1.2.3", "10.1.2.3:", ":4711", "10.1.2.3:0", "10.1.2.3:65536", "10.1.2.3:http", "a b:1", "a/b:1", "10.1.2.3:1,", strings.Repeat("a", TextMax) + ":1"} {
		if all, err := Split(bad); err == nil {
			t.Errorf("%q is taken for %q", bad, all)
		}
	}
}

// FuzzSplit splits any text. What is taken has the parts of the text, and no more.
func FuzzSplit(f *testing.F) {
	for _, seed := range []string{"10.1.2.3:4711,[fd00::3]:4711", "node1:1", "[fe80::1%eth0]:1", ",", "a:1,,b:2", "[::1]:99999", "[[::1]]:1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		all, err := Split(text)
		if err != nil {
			return
		}
		if len(text) > TextMax || strings.Join(all, ",") != text {
			t.Errorf("%q is taken for %q", text, all)
		}
		for _, a := range all {
			if host, port, err := net.SplitHostPort(a); err != nil || host == "" || port == "" || strings.ContainsAny(host, " \t\r\n/\x00") {
				t.Errorf("%q is taken for an address", a)
			}
		}
	})
}

// FuzzPatterns selects by any patterns. What is chosen is an address of the host.
func FuzzPatterns(f *testing.F) {
	for _, seed := range []string{"", "eth0,ib*", "^docker0", "10.0.0.0/8,^10.1.2.3", "[a-z]*", "::/0", "^", "*,^*"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, patterns string) {
		s, err := Select(host, patterns)
		if err == nil && len(s.Chosen) == 0 {
			t.Errorf("%q: nothing is chosen, without an error", patterns)
		}
		for _, c := range s.Chosen {
			if !slices.ContainsFunc(host, func(i Interface) bool { return i.Name == c.Interface && slices.Contains(i.Addresses, c.Address) }) {
				t.Errorf("%q: %s of %s is chosen", patterns, c.Address, c.Interface)
			}
		}
	})
}
