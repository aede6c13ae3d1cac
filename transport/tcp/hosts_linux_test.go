package tcp

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chorale-go/chorale/internal/netns"
	"github.com/chorale-go/chorale/internal/network"
	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/cluster"
	"golang.org/x/sys/unix"
)

func init() {
	if netns.Inside() {
		setup.Join = joinHosts
		setup.Patterns = map[string]cluster.Pattern{"compute": compute, "long": long}
	}
}

// port is at which every rank listens, on a host of its own.
const port = 4711

// joinHosts has every rank tell all others its addresses: that of docker0 first, which is
// the same on both hosts, and then those of the network between them.
func joinHosts(rank, size int, meet func(string) ([]string, error)) (transport.Endpoint, error) {
	s, err := network.Candidates("docker0,eth0")
	if err != nil {
		return nil, err
	}
	l, err := network.Listen(s.Addresses(), port)
	if err != nil {
		return nil, err
	}
	addresses, err := meet(network.Join(s.Addresses(), port))
	if err != nil {
		return nil, err
	}
	return New(Config{
		Rank: rank, Size: size, Listener: l, Encrypt: os.Getenv(encryptVar) != "",
		Lookup: func(_ context.Context, rank int) (string, error) { return addresses[rank], nil },
	})
}

// computing is for how long a rank computes before it receives: longer than any limit for
// a lost host.
const computing = network.LossTimeout + 2*time.Second

// compute has rank 1 compute while rank 0 sends it more than the system keeps.
func compute(r *cluster.Rank, _ int) error {
	if r.Rank() == 1 {
		time.Sleep(computing)
	}
	return r.Run("bandwidth", 64<<20, 1)
}

// long has the ranks exchange messages for ever.
func long(r *cluster.Rank, _ int) error { return r.Run("swap", 1<<20, 1<<30) }

// onTwoHosts starts a job of two ranks, each on a host of its own, and has them exchange a
// message. It returns false where the test runs once more, on the first host.
func onTwoHosts(t *testing.T) (c *cluster.Cluster, hosts [2]netns.Host, inside bool) {
	if hosts, inside = netns.Run(t); !inside {
		return nil, hosts, false
	}
	s := setup
	s.Command = func(int) *exec.Cmd { return hosts[1].Command(os.Args[0]) }
	c = cluster.Start(t, 2, s, nil)
	c.RunAll(t, "swap", 8, 1)
	return c, hosts, true
}

func TestRanksOfTwoHostsReachEachOtherBehindDecoys(t *testing.T) {
	for _, encrypt := range []string{"", "1"} {
		t.Setenv(encryptVar, encrypt)
		c, hosts, inside := onTwoHosts(t)
		if !inside {
			return
		}
		c.RunAll(t, "swap", 1<<20, 10)
		c.RunAll(t, "tagged", 1<<20, 3)
		l := c.Endpoint.(*Endpoint).links[1]
		if !l.remote {
			t.Errorf("the link with %s is taken for one within the host", hosts[1].Address)
		}
		c.End()
	}
}

// inTime repeats what measures how long a lost host is not noticed, until that is within the
// limit. The limit is half a second longer than the system needs: on a machine that runs other
// tests beside these ranks, a thread may be as late. What is too late three times in a row is
// too late by itself.
func inTime(t *testing.T, lose func() time.Duration) {
	t.Helper()
	const attempts = 3
	took := lose()
	for n := 1; took > network.LossTimeout && n < attempts && !t.Failed(); n++ {
		took = lose()
	}
	if took > network.LossTimeout {
		t.Errorf("noticed after %v, %d times in a row, want %v at most", took, attempts, network.LossTimeout)
	}
}

// losing has both ranks run something, cuts the link between their hosts, and tests that
// both notice. It returns after which time both have.
func losing(t *testing.T, c *cluster.Cluster, hosts [2]netns.Host, begun func() bool, pattern string, run func() error) time.Duration {
	t.Helper()
	c.StartOthers(pattern, 8, 1)
	failed := make(chan error, 1)
	go func() { failed <- run() }()
	cluster.Until(begun)
	hosts[1].IP(t, "link", "set", "eth0", "down")
	defer netns.PlugIn(t, hosts, 1)
	begin := time.Now()
	cluster.CheckPeer(t, <-failed, 1, transport.ErrLost, "")
	if reply := c.Reply(1); !strings.Contains(reply, "rank 0: "+transport.ErrLost.Error()) {
		t.Errorf("rank 1 ends with %q, want that rank 0 is lost", reply)
	}
	return time.Since(begin)
}

func TestALostHostIsNoticed(t *testing.T) {
	for _, test := range []struct {
		name, pattern string
		run           func(c *cluster.Cluster) error
		begun         func(l *link) bool
	}{
		{"while both wait", "wait", func(c *cluster.Cluster) error { return c.Await(1) }, func(l *link) bool { return !l.in.queue.Idle() }},
		{"in the middle of messages", "long", func(c *cluster.Cluster) error { return long(&c.Rank, 1) }, func(l *link) bool { return l.out.pending() || l.in.left > 0 }},
	} {
		for _, encrypt := range []string{"", "1"} {
			t.Setenv(encryptVar, encrypt)
			inside := false
			inTime(t, func() (took time.Duration) {
				c, hosts, in := onTwoHosts(t)
				if inside = in; !inside {
					return 0
				}
				e := c.Endpoint.(*Endpoint)
				took = losing(t, c, hosts, func() bool {
					e.engine.Lock()
					defer e.engine.Unlock()
					return test.begun(e.links[1])
				}, test.pattern, func() error { return test.run(c) })
				begin := time.Now()
				c.End()
				if took := time.Since(begin); took > 2*network.LossTimeout {
					t.Errorf("closing takes %v", took)
				}
				return took
			})
			if t.Failed() {
				t.Fatalf("%s, encrypted: %q", test.name, encrypt)
			}
			if !inside {
				return
			}
		}
	}
}

// A rank that computes leaves its messages unread for longer than any limit for a lost host.
func TestARankThatComputesIsNotLost(t *testing.T) {
	if testing.Short() {
		t.Skip("takes as long as a rank computes")
	}
	for _, encrypt := range []string{"", "1"} {
		t.Setenv(encryptVar, encrypt)
		c, _, inside := onTwoHosts(t)
		if !inside {
			return
		}
		c.RunAll(t, "compute", 8, 1)
		c.End()
	}
}

// The host of a rank that computes is lost while the rank's messages fill the system.
func TestALostHostIsNoticedByARankThatWaitsForRoom(t *testing.T) {
	inTime(t, func() time.Duration { return losingWithoutRoom(t) })
}

func losingWithoutRoom(t *testing.T) time.Duration {
	t.Helper()
	c, hosts, inside := onTwoHosts(t)
	if !inside {
		return 0
	}
	defer c.End()
	e := c.Endpoint.(*Endpoint)
	s := e.links[1].stream.(*socket)
	if err := unix.SetsockoptInt(s.fd, unix.IPPROTO_TCP, unix.TCP_RTO_MAX_MS, 1000); err != nil {
		t.Skipf("Linux before 6.15 leaves this to the launcher: %v", err)
	}
	failed := make(chan error, 1)
	go func() { failed <- compute(&c.Rank, 1) }() // rank 1 receives nothing
	cluster.Until(func() bool {
		info, err := unix.GetsockoptTCPInfo(s.fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		return err != nil || info.Snd_wnd == 0 && info.Unacked == 0
	})
	hosts[1].IP(t, "link", "set", "eth0", "down")
	defer netns.PlugIn(t, hosts, 1)
	begin := time.Now()
	cluster.CheckPeer(t, <-failed, 1, transport.ErrLost, "")
	return time.Since(begin)
}
