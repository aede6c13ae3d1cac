package testenv

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// The ports of the system are in a namespace of the test's own, in which there are 20.
func TestAFreeAddressIsGivenToNobodyElse(t *testing.T) {
	const inside = "CHORALE_TEST_PORTS"
	if os.Getenv(inside) == "" {
		if os.Getuid() != 0 {
			Skip(t, "network namespaces take root")
		}
		for _, program := range []string{"unshare", "ip"} {
			if _, err := exec.LookPath(program); err != nil {
				Skip(t, "%v", err)
			}
		}
		const script = `ip link set lo up && echo "40000 40019" >/proc/sys/net/ipv4/ip_local_port_range && exec "$0" -test.run "^$1$"`
		c := exec.Command("unshare", "--net", "sh", "-c", script, os.Args[0], t.Name())
		c.Env = append(os.Environ(), inside+"=1")
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	free := FreeAddress(t, "127.0.0.1")
	if _, err := net.Dial("tcp", free); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a connection ends with %v, want it refused", err)
	}
	given := 0
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			break // no port is left
		}
		defer l.Close()
		if given++; l.Addr().String() == free {
			t.Error("another listener has the port")
		}
	}
	if given < 10 {
		t.Errorf("%d listeners have a port, want most of 20", given)
	}
	l, err := net.Listen("tcp", free)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}
