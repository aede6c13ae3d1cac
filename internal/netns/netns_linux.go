package netns

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/chorale-go/chorale/internal/testenv"
)

// hostsVar holds the process of each host in a test that runs in the first.
const hostsVar = "CHORALE_TEST_HOSTS"

const (
	Docker = "172.17.0.1" // of docker0, on both hosts
	Name   = "node1"      // of the first host, which has it as 127.0.1.1 in /etc/hosts
)

// A Host is a network namespace.
type Host struct {
	Address, IPv6 string // of eth0
	process       string // that is in the namespace
}

func hosts() [2]Host {
	return [2]Host{{Address: "10.77.0.1", IPv6: "fd77::1"}, {Address: "10.77.0.2", IPv6: "fd77::2"}}
}

// Inside reports whether this process is in a host.
func Inside() bool { return os.Getenv(hostsVar) != "" }

// Run runs the calling test once more, in the first of two hosts. There it returns the
// hosts, and true. Where no hosts can be made, the test is skipped.
func Run(t *testing.T) (both [2]Host, inside bool) {
	t.Helper()
	both = hosts()
	if Inside() {
		both[0].process, both[1].process, _ = strings.Cut(os.Getenv(hostsVar), " ")
		return both, true
	}
	for _, name := range []string{"ip", "nsenter", "unshare"} {
		if _, err := exec.LookPath(name); err != nil {
			testenv.Skip(t, "a test of two hosts needs the programs of iproute2 and util-linux: %v", err)
		}
	}
	for i := range both {
		if err := both[i].start(t); err != nil {
			testenv.Skip(t, "a test of two hosts needs root: %v", err)
		}
	}
	connect(t, both)
	etcHosts := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(etcHosts, []byte("127.0.0.1 localhost\n127.0.1.1 "+Name+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"--mount", "sh", "-c", `mount --bind "$0" /etc/hosts && exec "$@"`, etcHosts, os.Args[0], "-test.v", "-test.run=^" + t.Name() + "$"}
	if testing.Short() {
		args = append(args, "-test.short")
	}
	c := both[0].Command("unshare", args...)
	c.Env = append(os.Environ(), hostsVar+"="+both[0].process+" "+both[1].process)
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

// start starts a process in a new namespace. It ends with the test.
func (h *Host) start(t *testing.T) error {
	c := exec.Command("cat")
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	in, err := c.StdinPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	t.Cleanup(func() {
		in.Close()
		c.Wait()
	})
	h.process = fmt.Sprint(c.Process.Pid)
	return nil
}

// connect makes the interfaces of both hosts.
func connect(t *testing.T, both [2]Host) {
	t.Helper()
	if out, err := exec.Command("ip", "link", "add", "eth0", "netns", both[0].process, "type", "veth", "peer", "name", "eth0", "netns", both[1].process).CombinedOutput(); err != nil {
		testenv.Skip(t, "two hosts cannot be connected: %v: %s", err, out)
	}
	for _, h := range both {
		h.IP(t, "link", "set", "lo", "up")
		h.IP(t, "address", "add", h.Address+"/24", "dev", "eth0")
		h.IP(t, "address", "add", h.IPv6+"/64", "dev", "eth0", "nodad")
		h.IP(t, "link", "set", "eth0", "up")
		h.IP(t, "link", "add", "docker0", "type", "bridge")
		h.IP(t, "address", "add", Docker+"/16", "dev", "docker0")
		h.IP(t, "link", "set", "docker0", "up")
	}
}

// Command returns a command that runs a program in the host.
func (h *Host) Command(name string, args ...string) *exec.Cmd {
	return exec.Command("nsenter", append([]string{"--net=/proc/" + h.process + "/ns/net", "--", name}, args...)...)
}

// IP runs the program ip in the host.
func (h *Host) IP(t testing.TB, args ...string) {
	t.Helper()
	if out, err := h.Command("ip", args...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}
