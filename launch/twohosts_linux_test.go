package launch

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chorale-go/chorale/internal/netns"
)

// startOnTwoHosts starts a program of this package by hand, the first half of the ranks on
// the first host. All meet at the first host's address.
func startOnTwoHosts(t *testing.T, hosts [2]netns.Host, size int, vars []string, args ...string) *byHand {
	t.Helper()
	b := &byHand{t: t, dir: t.TempDir()}
	for rank := range size {
		r := &handRank{cmd: hosts[2*rank/size].Command(os.Args[0], args...)}
		r.cmd.Stdout, r.cmd.Stderr = &r.out, &r.err
		r.cmd.Env = slices.Concat(os.Environ(), vars, []string{
			"CHORALE_RENDEZVOUS=" + hosts[0].Address + ":4711", "CHORALE_TOKEN=" + strings.Repeat("t", minToken),
			fmt.Sprintf("CHORALE_RANK=%d", rank), fmt.Sprintf("CHORALE_SIZE=%d", size)})
		if err := r.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.cmd.Process.Kill(); r.cmd.Wait() })
		b.ranks = append(b.ranks, r)
	}
	return b
}

// Both hosts have a docker0 of the same address, and the first is 127.0.1.1 to itself.
func TestAJobSpansHostsWithoutConfiguration(t *testing.T) {
	hosts, inside := netns.Run(t)
	if !inside {
		return
	}
	for rank, r := range startOnTwoHosts(t, hosts, 4, nil, "describe").reports() {
		neighbor := rank ^ 1
		if !slices.Equal(r.SharesMemory, []int{neighbor}) || r.Hosts != 2 || !r.TLS {
			said, _ := json.Marshal(r) // it marshals
			t.Errorf("rank %d: want memory shared with rank %d, 2 hosts, and TLS on control connections: %s", rank, neighbor, said)
		}
	}
	for _, vars := range [][]string{nil, {"CHORALE_ENCRYPT=1"}, {"CHORALE_TRANSPORT=tcp"}} {
		b := startOnTwoHosts(t, hosts, 5, vars, "ring", "20")
		if statuses := b.wait(); slices.Max(statuses) != 0 || strings.Count(b.String(), "token 20\n") != 5 {
			t.Errorf("%v: %v\n%s", vars, statuses, b)
		}
	}
}

// No packet tells the ranks of one host that the other one is gone.
func TestAHostThatIsUnpluggedIsLostToAllRanks(t *testing.T) {
	hosts, inside := netns.Run(t)
	if !inside {
		return
	}
	for _, program := range [][]string{{"ring", "1000000"}, {"await"}} {
		b := startOnTwoHosts(t, hosts, 4, nil, program...)
		b.await("joined", b.ranks...)
		hosts[0].IP(t, "link", "set", "eth0", "down")
		unplugged := time.Now()
		statuses := b.wait()
		if took := time.Since(unplugged); took > 20*time.Second {
			t.Errorf("%v: the ranks end after %v", program, took)
		}
		for rank, status := range statuses {
			if status != 1 {
				t.Errorf("%v: rank %d ends with status %d:\n%s", program, rank, status, b)
			}
		}
		netns.PlugIn(t, hosts, 0)
	}
}
