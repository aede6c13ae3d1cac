package netns

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chorale-go/chorale/internal/testenv"
)

// hostsVar holds the process of each host in a test that runs in the first.
const hostsVar = "CHORALE_TEST_HOSTS"

// Inside reports whether this process is in a host.
func Inside() bool { return os.Getenv(hostsVar) != "" }

// Run runs the calling test once more, in the first of two hosts. There it returns the
// hosts, and true. Where no hosts can be made, the test is skipped.
func Run(t *testing.T) (both [2]Host, inside bool) {
	t.Helper()
	if Inside() {
		both = hosts()
		both[0].Process, both[1].Process, _ = strings.Cut(os.Getenv(hostsVar), " ")
		return both, true
	}
	both, stop, err := Make()
	if err != nil {
		testenv.Skip(t, "%v", err)
	}
	t.Cleanup(stop)
	etcHosts := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(etcHosts, []byte("127.0.0.1 localhost\n127.0.1.1 "+Name+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"--mount", "sh", "-c", `mount --bind "$0" /etc/hosts && exec "$@"`, etcHosts, os.Args[0], "-test.v", "-test.run=^" + t.Name() + "$"}
	if testing.Short() {
		args = append(args, "-test.short")
	}
	c := both[0].Command("unshare", args...)
	c.Env = append(os.Environ(), hostsVar+"="+both[0].Process+" "+both[1].Process)
	out, err := c.CombinedOutput()
	switch {
	case err != nil:
		t.Errorf("in a host: %v\n%s", err, out)
	case strings.Contains(string(out), "--- SKIP: "+t.Name()+" "):
		t.Skipf("in a host:\n%s", out)
	case !strings.Contains(string(out), "--- PASS: "+t.Name()+" "):
		t.Errorf("the test has not run in a host:\n%s", out)
	case testing.Verbose():
		t.Logf("in a host:\n%s", out)
	}
	return both, false
}

// IP runs the program ip in the host.
func (h *Host) IP(t testing.TB, args ...string) {
	t.Helper()
	if err := h.ip(args...); err != nil {
		t.Fatal(err)
	}
}

// PlugIn connects a host that was unplugged, and returns when one reaches the other: until then
// a connection may fail, because the system has given up looking for the host.
func PlugIn(t testing.TB, hosts [2]Host, host int) {
	t.Helper()
	hosts[host].IP(t, "link", "set", "eth0", "up")
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.DialTimeout("tcp", net.JoinHostPort(hosts[1].Address, "9"), time.Second)
		if err == nil {
			conn.Close()
		}
		if err == nil || errors.Is(err, syscall.ECONNREFUSED) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("30 s after it was plugged in, a host is not reached: %v", err)
		}
	}
}
