package command

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/internal/netns"
	"github.com/chorale-go/chorale/internal/testenv"
	"github.com/chorale-go/chorale/model"
)

// Two of three hosts are in one network namespace, and the link to the third has a bandwidth of
// 80 Mbit/s, so that 256 KiB take 26 ms.
func TestTheProfileOfHostsTellsASlowLinkFromAFastOne(t *testing.T) {
	if testing.Short() {
		t.Skip("tune_hosts.txtar runs the same code")
	}
	namespaces, inside := netns.Run(t)
	if !inside {
		return
	}
	for _, h := range namespaces {
		if out, err := h.Command("tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "80mbit", "burst", "32kbit", "latency", "400ms").CombinedOutput(); err != nil {
			testenv.Skip(t, "a slow link needs tc, and a kernel with tbf: %v: %s", err, out)
		}
	}
	// A process in a namespace stands for a host: this one is in the first.
	hosts := []string{processIn(namespaces[0]), processIn(namespaces[1]), fmt.Sprint(os.Getpid())}
	file := filepath.Join(t.TempDir(), "profile.json")
	out, err := exec.Command("chorale-brief", "tune", "--quick", "--transport", "inproc", "--profile", file,
		"--hosts", strings.Join(hosts, ","), "--launcher", "nsenter --net=/proc/{host}/ns/net --", "--no-copy").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p, err := model.ParseProfile(text)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(p.Hosts, hosts) {
		t.Errorf("the hosts are %v: want %v", p.Hosts, hosts)
	}
	between := func(a, b string) model.HostLink {
		i := slices.IndexFunc(p.HostLinks, func(l model.HostLink) bool { return slices.Contains(l.Pairs, model.HostPair{a, b}) })
		if i < 0 {
			t.Fatalf("no link between %s and %s:\n%s", a, b, out)
		}
		return p.HostLinks[i]
	}
	fast := between(hosts[0], hosts[2])
	for _, slow := range []model.HostLink{between(hosts[0], hosts[1]), between(hosts[1], hosts[2])} {
		const bytes = 256 << 10
		if f, s := fast.OneWay.Time(bytes), slow.OneWay.Time(bytes); s < 10*f {
			t.Errorf("256 KiB take %g µs by the slow link and %g µs by the fast one: want 10 times as long at least\n%s", s, f, out)
		}
	}
	if len(fast.Pairs) != 1 {
		t.Errorf("the fast link is of %v: want one pair", fast.Pairs)
	}
	if _, err := p.Link("inproc"); err != nil {
		t.Errorf("within a host: %v", err)
	}
}

// processIn returns a process in a namespace.
func processIn(h netns.Host) string {
	file := h.Command("true").Args[1]
	return strings.TrimSuffix(strings.TrimPrefix(file, "--net=/proc/"), "/ns/net")
}
